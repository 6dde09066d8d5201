"""Our parser gives the expected answers, the suite is complete, and README.md has the recorded answers."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from asking import answer as asked_in_all_ways
from doc_pages import marked
from parsers import OURS, installed, version_of
from run import PAGE, RECORDED, answers_of, main, page
from suite import ALLOW, CONTESTED, NONE, SECTIONS, Case, Question, cases, octets_of

from scrapy_rep.protocol.robotstxt.parser import RobotsTxt

HERE = Path(__file__).parent
CASES = list(cases())
QUESTIONS = [
    pytest.param(case, question, id=f"{case.name}-{number}")
    for case in CASES
    for number, question in enumerate(case.questions, 1)
]
PROGRAM = """import sys
from protego import Protego
for line in sys.stdin:
    path, agent, url = line.rstrip("\\n").split("\\t")
    body = open(path, "rb").read().decode("utf-8", "ignore")
    print("allow" if Protego.parse(body).can_fetch(url, agent) else "disallow", flush=True)
"""


@pytest.mark.parametrize(("case", "question"), QUESTIONS)
def test_our_parser_gives_the_expected_answer(case: Case, question: Question) -> None:
    robots = RobotsTxt.parse(case.body)
    if question.expected == NONE:
        with pytest.raises(ValueError, match="is not a product token"):
            robots.verdict(question.url, question.agent)
    else:
        allowed = asked_in_all_ways(robots, question.url, question.agent)
        assert allowed is (question.expected == ALLOW), question.why


def test_all_collected_cases_are_there_once() -> None:
    ids = Counter(source for case in CASES for question in case.questions for source in question.sources)
    assert set(ids.values()) == {1}
    suites = Counter(source.partition("/")[0] for source in ids)
    del suites["added"]
    assert suites == {"rfc9309": 57, "google-spec-test": 400, "google-robots_test": 145, "decided": 98, "field": 18}


def test_no_two_cases_ask_the_same() -> None:
    asked = Counter((case.body, one.agent, one.url) for case in CASES for one in case.questions)
    assert asked.most_common(1)[0][1] == 1
    assert len({(case.section, case.body) for case in CASES}) == len(CASES)
    assert len({case.name for case in CASES}) == len(CASES)


def test_every_case_has_questions_and_every_question_says_why() -> None:
    files = {path.stem for path in HERE.glob("*.json")} - {RECORDED.stem}
    assert files == {case.section for case in CASES} == {*SECTIONS, CONTESTED}
    assert all(case.questions for case in CASES)
    assert all(question.why and question.sources for case in CASES for question in case.questions)
    assert all("RFC 9309" in one.why for case in CASES if case.section != CONTESTED for one in case.questions)


@pytest.mark.parametrize(
    ("parts", "octets"),
    [
        ("a\n\u00e9", b"a\n\xc3\xa9"),
        (["a", "b\n"], b"ab\n"),
        (["a", {"octets": "E9 0d"}, {"text": "bc", "times": 2}], b"a\xe9\rbcbc"),
    ],
)
def test_parts_stand_for_octets(parts: object, octets: bytes) -> None:
    assert octets_of(parts) == octets


def test_the_case_that_the_page_shows_is_one_of_the_suite() -> None:
    shown = json.loads(marked("case"))
    (case,) = (
        case for case in json.loads((HERE / "2.5-limits.json").read_text("utf-8")) if case["name"] == shown["name"]
    )
    assert case == shown


# The matrix.


def test_the_page_shows_the_recorded_answers() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python tests/conformance/run.py --record"


@pytest.mark.parametrize("name", installed())
def test_installed_parsers_still_give_the_recorded_answers(name: str) -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))[name]
    # Another version may give other answers. The page names the version that was asked.
    if name == OURS or recorded["version"] == version_of(name):
        assert recorded["answers"] == answers_of(installed()[name].asked)


def test_any_program_can_be_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    shown = []
    for arguments in (["Protego"], ["--", sys.executable, str(program)]):
        assert main(arguments) == 1
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    assert (
        "wrong: 2.2.4-other-records/rfc-other: 'ExampleBot' https://www.example.com/a: disallow, by RFC 9309"
        in shown[0]
    )
    assert main(["scrapy-rep"]) == 0
