"""Evidence (REP_EVIDENCE): why a request was allowed or refused, in `response.meta["robots"]`."""

from __future__ import annotations

from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep.gate import Gate
from scrapy_rep.protocol.robotstxt.rules import Verdict
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import request_forbidden
from scrapy_rep.text import iso_time
from scrapy_rep.user_agent import ProductTokens

META_KEY = "robots"


class Evidence:
    """Stores the evidence in each request's meta. It replaces evidence that redirects, retries or spiders copied."""

    def __init__(self, crawler: Crawler, _settings: RepSettings, gate: Gate) -> None:
        self._gate = gate
        gate.before_download.append(self._note)
        crawler.signals.connect(self._note, signal=request_forbidden)

    def _note(self, request: Request, verdict: Verdict) -> None:
        tokens, now = self._gate.product_tokens(request), self._gate.now()
        request.meta[META_KEY] = evidence_of(request.url, verdict, tokens, now)


def evidence_of(url: str, verdict: Verdict, product_tokens: ProductTokens, now: float) -> dict[str, Any]:
    """Return the evidence for a verdict at `now`, as values for JSON. `docs/evidence.md` explains the keys."""
    rule = verdict.decided_by
    final_url, received_at, sha256 = verdict.received or (None, None, None)
    return {
        "url": url,
        "decided_at": iso_time(now),
        "allowed": verdict.allowed,
        "reason": verdict.reason.value,
        "rule": str(rule) if rule is not None else None,
        "line": rule.line if rule is not None else None,
        "group": verdict.product_token,
        "product_tokens": list(product_tokens),
        "robots_url": verdict.robots_url,
        "final_url": final_url or None,
        "received_at": iso_time(received_at) if received_at is not None else None,
        "sha256": sha256 or None,
        "access": verdict.access.value if verdict.robots_url is not None else None,
        "answer": verdict.answer or None,
    }
