"""Usage preferences of pages (REP_PURPOSES): stored in `response.meta`, counted and enforced.

They are enforced with REP_PURPOSES_REFUSE.
"""

from collections.abc import Mapping
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.http import HtmlResponse, Response

from scrapy_rep.extensions import Extension
from scrapy_rep.fetching.headers import licenses_in_links
from scrapy_rep.gate import Landing
from scrapy_rep.meta import LICENSES_KEY, SOURCES_KEY, USAGE_KEY
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason
from scrapy_rep.stats import LICENSED, USAGE
from scrapy_rep.usage import PREFERENCE_WORDS, TDM_RESERVATION, VOCABULARY
from scrapy_rep.usage.preferences import Purposes, usage_in

# A page with a `meta` element that is read has one of these texts.
_SIGNS = [TDM_RESERVATION, *(rule for category in VOCABULARY for rule in category.robots_rules)]


class PageUsage(Extension):
    """Stores `response.meta["robots_usage"]`, a dict: category -> whether it is allowed. Unknown ones are left out.

    `response.meta["robots_usage_sources"]` has the statement that decided about each category, and
    `response.meta["robots_licenses"]` the URLs of the page's licenses (RSL 1.0).
    """

    def start(self) -> None:
        """Raises ValueError if the extra `usage` is not installed."""
        self._purposes = Purposes(self._settings.purposes, self._settings.purposes_refuse)
        # Verdicts are not stored in the request's meta, because redirects and retries copy the meta.
        self._verdicts: WeakKeyDictionary[Request, Verdict] = WeakKeyDictionary()
        self._gate.judges.append(self._purposes.judge)
        self._gate.before_download.append(self._before_fetch)
        self._gate.after_download.append(self._after_fetch)
        self._gate.waits_for_landings = True

    def _before_fetch(self, request: Request, verdict: Verdict) -> None:
        _forget(request)  # the spider may have copied another page's meta
        self._verdicts[request] = verdict

    def _after_fetch(self, request: Request, response: Response, landing: Landing | None) -> None:
        """Store and count the page's preferences. Raises ForbiddenByRobots if the page is refused."""
        # None if another middleware returned a response before this package saw the request.
        before = self._verdicts.pop(request, None)
        judged, policy = landing or (request, None if before is not None else self._gate.peek(request))
        verdict = (before if landing is None else None) or self._gate.verdict_on(judged, policy)
        tokens = self._gate.product_tokens(judged)
        usage = usage_in(verdict).with_response(response.headers.getlist, _meta_elements(response), tokens)
        verdict = self._purposes.judge_usage(verdict, usage)
        # In a dry run, the request may have been reported before it was fetched.
        if verdict.reason is VerdictReason.USAGE and (before is None or before.allowed):
            self._gate.refusals.refuse(request, verdict)
        request.meta[USAGE_KEY] = dict(usage)
        request.meta[SOURCES_KEY] = {category: str(usage.deciding(category)) for category in usage}
        licenses = filter(None, (*usage.licenses, *licenses_in_links(response)))
        request.meta[LICENSES_KEY] = list(dict.fromkeys(licenses))
        if request.meta[LICENSES_KEY]:
            self._count(LICENSED)
        self._count_page(usage)

    def request_forbidden(self, request: Request, verdict: Verdict) -> None:
        _forget(request)
        if verdict.reason is VerdictReason.USAGE and not self._settings.dry_run:
            self._count_page(usage_in(verdict))

    def _count_page(self, preferences: Mapping[str, bool]) -> None:
        for purpose in self._purposes.categories:
            self._count(USAGE.format(purpose, PREFERENCE_WORDS[preferences.get(purpose)]))

    def spider_closed(self) -> None:
        for purpose in self._purposes.categories:
            get, words = self._stats.get_value, PREFERENCE_WORDS.values()
            numbers = ", ".join(f"{word} for {get(USAGE.format(purpose, word), 0):,}" for word in words)
            self._log.info("Pages by what sites state about the purpose %r: %s", purpose, numbers)


def _forget(request: Request) -> None:
    for key in (USAGE_KEY, SOURCES_KEY, LICENSES_KEY):
        request.meta.pop(key, None)


def _meta_elements(response: Response) -> list[tuple[str, str]]:
    """Return the name and the content of each `meta` element, if one of them may state preferences."""
    if not isinstance(response, HtmlResponse):
        return []
    try:
        text = response.text.lower()
    except (ValueError, LookupError):  # the charset is a codec that cannot decode pages, such as `idna`
        response = response.replace(encoding="latin-1")
        text = response.text.lower()
    if not any(sign in text for sign in _SIGNS):  # most pages need not be parsed
        return []
    elements = (element.attrib for element in response.css("meta[name][content]"))
    return [(element["name"].strip().lower(), element["content"]) for element in elements]
