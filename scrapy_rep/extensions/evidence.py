"""Why a request was allowed or refused: `response.meta["robots"]` (REP_EVIDENCE), a file (REP_REFUSALS)."""

import gzip
import json
from typing import Any

from scrapy import Request

from scrapy_rep.extensions import Extension
from scrapy_rep.extensions.output_file import append, iso_time, output_path
from scrapy_rep.gate import Gate
from scrapy_rep.meta import EVIDENCE_KEY
from scrapy_rep.protocol.robotstxt.rules import Verdict
from scrapy_rep.stats import REFUSALS_LOST


class Evidence(Extension):
    """Stores the evidence in each request's meta. It replaces evidence that redirects, retries or spiders copied."""

    def start(self) -> None:
        self._gate.before_download.append(self._note)

    def _note(self, request: Request, verdict: Verdict) -> None:
        request.meta[EVIDENCE_KEY] = evidence_of(request, verdict, self._gate)

    request_forbidden = _note


class RefusalsFile(Extension):
    """Appends a line for each refused request. Each line is one write, so several crawls may share the file."""

    def start(self) -> None:
        """Raises ValueError if no file can be created."""
        self._path = output_path("REP_REFUSALS", str(self._settings.refusals), self._crawler, self._gate.now())

    def spider_opened(self) -> None:
        self._append(b"")  # the file exists even if nothing is refused

    def request_forbidden(self, request: Request, verdict: Verdict) -> None:
        referrer = request.headers.get("Referer")
        values = {
            **evidence_of(request, verdict, self._gate),
            "referrer": referrer.decode("latin-1") if referrer is not None else None,
            "dry_run": self._settings.dry_run,
        }
        line = json.dumps(values).encode() + b"\n"
        self._append(gzip.compress(line) if self._path.suffix == ".gz" else line)

    def _append(self, octets: bytes) -> None:
        """Append octets to the file. A failure is counted, and the first one is logged."""
        try:
            append(self._path, octets)
        except OSError as exc:
            if self._is_first("failure"):
                message = "REP_REFUSALS: %s cannot be written (%s). The stat rep/refusals/lost counts the missing lines"
                self._log.error(message, self._path, exc)
            if octets:  # the first write only creates the file
                self._count(REFUSALS_LOST)


def evidence_of(request: Request, verdict: Verdict, gate: Gate) -> dict[str, Any]:
    """Return the evidence for a verdict reached just now, as values for JSON. `docs/evidence.md` explains the keys."""
    rule = verdict.decided_by
    final_url, received_at, sha256 = verdict.received or (None, None, None)
    return {
        "url": request.url,
        "decided_at": iso_time(gate.now()),
        "allowed": verdict.allowed,
        "reason": verdict.reason.value,
        "rule": str(rule) if rule is not None else None,
        "line": rule.line if rule is not None else None,
        "group": verdict.product_token,
        "product_tokens": list(gate.product_tokens(request)),
        "robots_url": verdict.robots_url,
        "final_url": final_url or None,
        "received_at": iso_time(received_at) if received_at is not None else None,
        "sha256": sha256 or None,
        "access": verdict.access.value if verdict.robots_url is not None else None,
        "answer": verdict.answer or None,
    }
