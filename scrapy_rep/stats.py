"""Every stat of this package and what it counts; the table in the docs is held against this one.

In the names, `N` stands for a status, `TYPE` for an exception's type, `PURPOSE` for a category of use, and `VENDOR` for
a vendor of challenges. Scrapy's own middleware has the stats that begin with `robotstxt/`, too, with the same meaning.
"""

from __future__ import annotations

from collections.abc import Mapping

STATS: Mapping[str, str] = {
    "robotstxt/request_count": "requests for robots.txt, with each redirect and each retry counted by itself",
    "robotstxt/response_count": "answers to them",
    "robotstxt/response_status_count/N": "answers with status N; `other` for those outside 100-599",
    "robotstxt/exception_count/TYPE": "requests for robots.txt that ended in an exception, by its type",
    "robotstxt/forbidden": "requests that were refused",
    "rep/access/success": "fetches of a robots.txt that was read as rules",
    "rep/access/unavailable": "fetches after which everything was allowed",
    "rep/access/restricted": "fetches after which nothing was allowed by `REP_STATUS_POLICY`",
    "rep/access/unreachable": "fetches that found robots.txt unreachable",
    "rep/no_rules/status": "origins where everything is allowed by the status of robots.txt, such as 404",
    "rep/no_rules/markup": "origins where robots.txt is a page of HTML",
    "rep/no_rules/empty": "origins whose robots.txt has no rules",
    "rep/no_rules/redirects": "origins whose robots.txt redirects too often",
    "rep/challenge/VENDOR": "origins whose robots.txt is a challenge",
    "rep/dropped/rule": "requests that were refused by a rule",
    "rep/dropped/restricted": "requests that were refused by `REP_STATUS_POLICY`",
    "rep/dropped/unreachable": "requests that were refused because robots.txt was unreachable",
    "rep/dropped/too_costly": "requests that were refused because comparing them with the rules would take too long",
    "rep/dropped/usage": "requests and responses that were refused by `REP_PURPOSES_REFUSE`",
    "rep/dropped/early": "of the refused requests, those refused when they were scheduled (`REP_DROP_EARLY`)",
    "rep/shadow/forbidden": "requests that would have been refused but for the dry run (`REP_SHADOW`)",
    "rep/shadow/rule": "requests that would have been refused by a rule",
    "rep/shadow/restricted": "requests that would have been refused by `REP_STATUS_POLICY`",
    "rep/shadow/unreachable": "requests that would have been refused because robots.txt was unreachable",
    "rep/shadow/too_costly": "requests that would have been refused because comparing them would take too long",
    "rep/shadow/usage": "requests and responses that would have been refused by `REP_PURPOSES_REFUSE`",
    "rep/bypassed": "pages that a handler or a service fetched although robots.txt forbids them (`REP_BYPASSED`)",
    "rep/exempt": "requests that passed by `REP_EXEMPT`",
    "rep/crawl_delay/obeyed": "files read with a `Crawl-delay` for this crawler that is obeyed",
    "rep/crawl_delay/capped": "files read with one that is obeyed up to `REP_CRAWL_DELAY_MAX`",
    "rep/crawl_delay/ignored": "files read with one that is not obeyed",
    "rep/usage/PURPOSE/allowed": "pages that may be used for this one of `REP_PURPOSES`",
    "rep/usage/PURPOSE/disallowed": "pages that may not, including those that were refused for it",
    "rep/usage/PURPOSE/unknown": "pages of which the site does not say whether they may",
    "rep/cache/hit": "requests decided at once, because their origin was known",
    "rep/cache/stale": "requests decided by rules past their time, because robots.txt was unreachable",
    "rep/cache/miss": "origins that were not known when a request needed them",
    "rep/waited": "requests that waited for their origin's robots.txt",
    "rep/redirects": "redirects followed on the way to a robots.txt",
    "rep/redirects/shared": "redirects to an address whose answer was known already, or under way",
    "rep/revalidated": "answers that confirmed the stored rules (304)",
    "rep/refreshed": "origins fetched again in the background, towards the end of their lifetime",
    "rep/storage/hit": "origins that `REP_STORAGE` knew",
    "rep/storage/miss": "origins that it did not know",
    "rep/storage/error": "times that it could not be used",
    "rep/retries": "requests for robots.txt that were repeated",
    "rep/archive/answers": "answers to requests for robots.txt that are in the archive (`REP_ARCHIVE`)",
    "rep/archive/lost": "answers, and times that a robots.txt became known, that could not be archived",
    "rep/refusals/lost": "refused requests that could not be written to `REP_REFUSALS`",
}
