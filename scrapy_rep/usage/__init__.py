"""Usage preferences (REP_PURPOSES): what sites state that their pages may be used for, such as training AI.

This folder implements the drafts on usage. This module has the categories of use and their spellings. `statements`
reads lines of robots.txt, headers of responses and `meta` elements of pages. `preferences` combines the statements
for a page, and decides whether the page is refused for a purpose of the crawl. `extensions.page_usage` connects all
this to a crawl.

To delete the feature, delete this folder, `extensions.page_usage`, their rows in tables, and the parts of
`scrapy robots` and of the report that show usage preferences. A search for `usage` and `PURPOSES` finds all rows.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scrapy_rep.protocol.robotstxt.syntax import Directive

CONTENT_USAGE, CONTENT_SIGNAL = Directive.CONTENT_USAGE.key, Directive.CONTENT_SIGNAL.key
# Headers with rules for robots, such as `X-Robots-Tag: noai`. `Robots-Tag` is the coming name.
ROBOTS_TAGS = ("x-robots-tag", "robots-tag")
ROBOTS_META = "meta robots"  # stands for `<meta name="robots" content="noai">` in a page of HTML
# TDMRep: the header `TDM-Reservation: 1`, and `<meta name="tdm-reservation" content="1">` in a page of HTML.
TDM_RESERVATION, TDM_META = "tdm-reservation", "meta tdm-reservation"
USAGE_HEADERS = (CONTENT_USAGE, CONTENT_SIGNAL, TDM_RESERVATION)

VOCAB_DRAFT = "draft-ietf-aipref-vocab-08 of 2026-09-14"
SIGNALS = "contentsignals.org"
EXTENDED_SIGNALS = f"{SIGNALS}, extended on 2026-07-01"
TDMREP = "TDM Reservation Protocol (W3C community group) of 2024-05-10"
OLDER_VOCAB = "draft-ietf-aipref-vocab-01 of 2025-06-19"
TOKEN_DRAFT = "draft-kelley-aipref-training-preference-signal-00 of 2026-10-30"  # noqa: S105 - no password


class Category(NamedTuple):
    """A category of use."""

    name: str
    spellings: Mapping[str, Sequence[str]]
    """Directive -> the category's spellings: today's, and then those of older drafts, for this use or for one that
    includes it. `use=full` stands for the key `use` with this value."""
    source: str
    policy_token: str | None = None
    """A product token that stands for this use. The rules of its groups say which pages may be used in this way.
    None if there is no such token."""
    robots_rules: frozenset[str] = frozenset()
    """The rules for robots that disallow this use, in ROBOTS_TAGS and ROBOTS_META."""


VOCABULARY = (
    Category(
        "train-ai",
        {CONTENT_USAGE: ["train-ai", "ai", "genai", "train-genai"], CONTENT_SIGNAL: ["ai-train"]},
        f"{VOCAB_DRAFT}, AI Training; {SIGNALS}; {TOKEN_DRAFT}",
        policy_token="__usage_ai-training",  # noqa: S106 - no password
        # As img2dataset reads them, whatever is trained.
        robots_rules=frozenset({"noai", "noimageai", "noml"}),
    ),
    Category("ai-use", {CONTENT_USAGE: ["ai-use"]}, f"{VOCAB_DRAFT}, AI Use"),
    Category("search", {CONTENT_USAGE: ["search"], CONTENT_SIGNAL: ["search"]}, f"{VOCAB_DRAFT}, Search; {SIGNALS}"),
    Category("ai-input", {CONTENT_SIGNAL: ["ai-input"]}, SIGNALS),
    Category("use-reference", {CONTENT_SIGNAL: ["use=reference"]}, EXTENDED_SIGNALS),
    Category("use-full", {CONTENT_SIGNAL: ["use=full"]}, EXTENDED_SIGNALS),
    Category("tdm", {key: ["tdm"] for key in (CONTENT_USAGE, TDM_RESERVATION, TDM_META)}, f"{TDMREP}; {OLDER_VOCAB}"),
)

POLICY_TOKENS = {category.name: category.policy_token for category in VOCABULARY if category.policy_token is not None}

# The words of the draft for a preference (vocab, Statements of Preference).
PREFERENCE_WORDS: Mapping[bool | None, str] = {True: "allowed", False: "disallowed", None: "unknown"}

# The values of `use` in a Content-Signal: how much a crawler may keep and show. Each level includes those before it.
USE_LEVELS = ("immediate", "reference", "full")
