"""The collected cases: RFC 9309's own figures, other parsers' tests, and every point on which parsers differ."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from asking import answer

from scrapy_rep.protocol.robotstxt.parser import RobotsTxt


@dataclass(frozen=True)
class Case:
    """A robots.txt, a question to it, and what the source expects."""

    id: str
    body: bytes
    agent: str
    url: str
    allowed: bool
    why: str

    @property
    def outcome(self) -> bool:
        return answer(RobotsTxt.parse(self.body), self.url, self.agent)


def read(name: str) -> list[Case]:
    lines = (Path(__file__).parents[1] / "data" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        Case(
            row["id"],
            base64.b64decode(row["body_b64"]),
            row["agent"],
            row["url"],
            row["allowed"],
            row.get("why") or row.get("note") or "",
        )
        for row in map(json.loads, lines)
    ]


STANDARD, DECIDED, CONTESTED = read("standard"), read("decided"), read("contested")


@dataclass(frozen=True)
class Decision:
    """What is decided about contested cases: for each, whether as its source says."""

    reason: str
    as_the_source: str = ""
    """Ids, in a list separated by white space."""
    against_the_source: str = ""
    no_token: str = ""
    """The crawler asks by what is no product token."""


LINE_TOKEN = "2.2.1: a line's token ends at the first character that no token has"
DIGITS = "2.2.1: digits belong to the token, else MJ12bot could not be named; it is compared whole"
ROBOTS_TXT = '2.2.2: "The /robots.txt URI is implicitly allowed."'
NON_ASCII = "2.2.2: octets outside ASCII are percent-encoded prior to comparison, in the URL too"
UNRESERVED = "2.2.2, Figure 4, row 5: escapes of unreserved characters are decoded prior to comparison"

DECISIONS = (
    Decision("2.2.2, Figure 4, row 2: in a query %3A and %2F mean : and /", "rfc9309/2.2.2-fig4/02"),
    Decision(
        NON_ASCII,
        "rfc9309/2.2.2-fig4/06",
        """google-spec-test/correctness/non-ascii-paths/03 google-spec-test/correctness/non-ascii-paths/05
        google-robots_test/ID_Encoding/03 google-robots_test/ID_Encoding/05""",
    ),
    Decision(
        UNRESERVED,
        "rfc9309/2.2.2-fig4/07 rfc9309/2.2.2-fig4/08",
        "google-spec-test/correctness/non-ascii-paths/06 google-robots_test/ID_Encoding/06",
    ),
    Decision(
        "2.2.3, Figure 6: %2A and %24 in a rule match a literal * and $",
        "rfc9309/2.2.3-fig6/01 rfc9309/2.2.3-fig6/02",
    ),
    Decision(
        ROBOTS_TXT,
        "rfc9309/2.2.2-robotstxt/01 google-spec-test/stress/860237/03 google-spec-test/stress/860237/09",
        """google-spec-test/stress/327748/06 google-spec-test/stress/369883/06 google-spec-test/stress/369883/10
        google-spec-test/stress/860237/10""",
    ),
    Decision(
        "2.2: half a byte order mark is garbage, and the key behind it another key",
        against_the_source="""google-spec-test/correctness/BOM-characters/02
        google-spec-test/correctness/BOM-characters/03""",
    ),
    Decision(
        "2.2.4: a missing colon is forgiven where the line is two words, the first a known key",
        "google-spec-test/correctness/accepted-mistakes/03 google-robots_test/ID_LineSyntax_Line/03",
    ),
    Decision(
        "2.2.1: no groups, so no rules apply",
        "google-spec-test/correctness/empty-string/01",
    ),
    Decision("RFC 9110 4.2.3: an empty path is /", "google-spec-test/correctness/empty-string/04"),
    Decision(
        "2.2.2: octets are compared; index.html is no directory",
        "google-spec-test/correctness/index-page/02 google-spec-test/correctness/index-page/03",
        "google-spec-test/correctness/index-page/01 google-robots_test/GoogleOnly_IndexHTMLisDirectory/01",
    ),
    Decision(
        LINE_TOKEN,
        """google-spec-test/correctness/user-agent-name/01
        google-spec-test/correctness/user-agent-name/03 google-spec-test/correctness/user-agent-name/04
        google-spec-test/correctness/user-agent-name/05 google-spec-test/correctness/user-agent-name/06
        google-spec-test/correctness/user-agent-name/07 google-spec-test/correctness/user-agent-name/08
        google-spec-test/correctness/user-agent-name/09 google-spec-test/correctness/user-agent-name/10
        google-spec-test/correctness/user-agent-name/11 google-spec-test/correctness/user-agent-name/12
        google-spec-test/correctness/user-agent-name/13 google-spec-test/correctness/user-agent-name/14
        google-spec-test/stress/701159/06
        google-robots_test/ID_UserAgentValueCaseInsensitive/04 google-robots_test/ID_UserAgentValueCaseInsensitive/05
        google-robots_test/ID_UserAgentValueCaseInsensitive/06 google-robots_test/ID_UserAgentValueCaseInsensitive/10
        google-robots_test/ID_UserAgentValueCaseInsensitive/11 google-robots_test/ID_UserAgentValueCaseInsensitive/12
        google-robots_test/GoogleOnly_AcceptUserAgentUpToFirstSpace/01""",
    ),
    Decision(
        "2.2.1: what is no product token is in no group, and asking by it is a mistake",
        no_token="""google-spec-test/correctness/empty-string/02 google-spec-test/correctness/empty-string/03
        google-spec-test/correctness/user-agent-name/02 google-robots_test/GoogleOnly_SystemTest/02
        google-robots_test/GoogleOnly_SystemTest/04
        google-robots_test/GoogleOnly_AcceptUserAgentUpToFirstSpace/02""",
    ),
    Decision(
        DIGITS,
        "google-spec-test/stress/860237/01 google-spec-test/stress/860237/02",
        "google-spec-test/stress/369883/07 google-spec-test/stress/369883/08 google-spec-test/stress/369883/09",
    ),
    Decision(
        "2.5: the file's length has a limit, a line's has none",
        against_the_source="google-robots_test/GoogleOnly_LineTooLong/02 google-robots_test/GoogleOnly_LineTooLong/05",
    ),
)

AS_THE_SOURCE = {id_: decision.reason for decision in DECISIONS for id_ in decision.as_the_source.split()}
NO_TOKEN = {id_: decision.reason for decision in DECISIONS for id_ in decision.no_token.split()}
AGAINST_THE_SOURCE = {id_: decision.reason for decision in DECISIONS for id_ in decision.against_the_source.split()}


def params(cases: Iterable[Case]) -> list[object]:
    return [pytest.param(case, id=case.id) for case in cases]


@pytest.mark.parametrize("case", params(STANDARD))
def test_uncontested(case: Case) -> None:
    assert case.outcome is case.allowed, case.why


@pytest.mark.parametrize("case", params(DECIDED))
def test_decided(case: Case) -> None:
    assert case.outcome is case.allowed, case.why


@pytest.mark.parametrize("case", params(case for case in CONTESTED if case.id in AS_THE_SOURCE))
def test_contested_and_decided_as_the_source_says(case: Case) -> None:
    assert case.outcome is case.allowed, AS_THE_SOURCE[case.id]


@pytest.mark.parametrize("case", params(case for case in CONTESTED if case.id in AGAINST_THE_SOURCE))
def test_contested_and_decided_against_the_source(case: Case) -> None:
    assert case.outcome is not case.allowed, AGAINST_THE_SOURCE[case.id]


@pytest.mark.parametrize("case", params(case for case in CONTESTED if case.id in NO_TOKEN))
def test_contested_and_asked_by_no_product_token(case: Case) -> None:
    with pytest.raises(ValueError, match="is not a product token"):
        RobotsTxt.parse(case.body).verdict(case.url, case.agent)


def test_every_case_is_there_once() -> None:
    assert [len(cases) for cases in (STANDARD, DECIDED, CONTESTED)] == [539, 98, 63]
    assert len({case.id for case in (*STANDARD, *DECIDED, *CONTESTED)}) == 539 + 98 + 63


def test_every_contested_case_is_decided_once() -> None:
    listed = [id_ for d in DECISIONS for id_ in f"{d.as_the_source} {d.against_the_source} {d.no_token}".split()]
    assert sorted(listed) == sorted(case.id for case in CONTESTED)
    assert (len(AS_THE_SOURCE), len(AGAINST_THE_SOURCE), len(NO_TOKEN)) == (38, 19, 6)
