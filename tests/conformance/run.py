"""Ask a parser all questions of this suite: `python tests/conformance/run.py PARSER`.

PARSER is a name in `parsers.py`, such as `Protego`; or `--` and the command of a program that reads one question and
prints one word per line (README.md). `--record` asks all parsers that are installed, and writes their answers to
`answers.json` and README.md.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from parsers import OURS, PARSERS, Program, installed, version_of
from suite import CONTESTED, SECTIONS, Asked, Case, answer, cases

HERE = Path(__file__).parent
RECORDED = HERE / "answers.json"
PAGE = HERE / "README.md"
WORDS = {"allow": "a", "disallow": "d", "none": "-"}  # in answers.json
HEADING = "## The matrix\n"  # all that follows it in the page is written by `record`
RIGHT, WRONG, UNDECIDED = "right", "wrong", "undecided"

Answers = Mapping[str, str]
"""Name of a case -> one letter for each of its questions (WORDS)."""


def answers_of(asked: Asked) -> dict[str, str]:
    return {case.name: "".join(WORDS[answer(asked, case, one)] for one in case.questions) for case in cases()}


def judged(case: Case, letters: str) -> Iterator[str]:
    """Yield RIGHT, WRONG or UNDECIDED for each question. UNDECIDED means that the parser gave no answer."""
    for question, letter in zip(case.questions, letters, strict=True):
        is_right = letter == WORDS[question.expected]
        yield RIGHT if is_right else UNDECIDED if letter == WORDS["none"] else WRONG


def main(arguments: list[str]) -> int:
    """Run the command, and return its exit status: 1 if an answer outside `contested` is wrong or missing."""
    if arguments == ["--record"]:
        record()
        return 0
    program = Program(arguments[1:]) if arguments[:1] == ["--"] and len(arguments) > 1 else None
    if program is None and (len(arguments) != 1 or arguments[0] not in PARSERS):
        sys.exit(f"usage: run.py [{' | '.join(PARSERS)} | --record | -- PROGRAM [ARGUMENT ...]]")
    letters = answers_of(program.asked if program is not None else PARSERS[arguments[0]].asked)
    if program is not None:
        program.close()
    counts: dict[str, Counter[str]] = {section: Counter() for section in (*SECTIONS, CONTESTED)}
    for case in cases():
        for question, how in zip(case.questions, judged(case, letters[case.name]), strict=True):
            counts[case.section][how] += 1
            if how != RIGHT and case.section != CONTESTED:
                asked = f"{question.agent!r} {question.url[:100]}"
                print(f"{how}: {case.name}: {asked}: {question.expected}, by {question.why}")
    for section, count in counts.items():
        words = (f"as {OURS}", f"not as {OURS}", UNDECIDED) if section == CONTESTED else (RIGHT, WRONG, UNDECIDED)
        numbers = (f"{count[how]:4} {word}" for how, word in zip((RIGHT, WRONG, UNDECIDED), words, strict=True))
        print(f"{section:26}{''.join(numbers)}")
    return int(any(counts[section][how] for section in SECTIONS for how in (WRONG, UNDECIDED)))


def record() -> None:
    """Write the answers of all installed parsers. Recorded answers of other parsers are kept."""
    recorded = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}
    today = datetime.now(timezone.utc).date().isoformat()
    for name, parser in installed().items():
        recorded[name] = {"version": version_of(name), "date": today, "answers": answers_of(parser.asked)}
    lines = (f"{json.dumps(name)}: {json.dumps(recorded[name])}" for name in PARSERS if name in recorded)
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """Return the text of README.md: what people wrote above HEADING, then the tables of recorded answers."""
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    everything = list(cases())
    written = PAGE.read_text(encoding="utf-8").partition(HEADING)[0]
    tables = [*_matrix(recorded, everything), *_contested(recorded, everything)]
    return written + "\n".join(tables)


def _matrix(recorded: Mapping[str, Any], everything: list[Case]) -> Iterator[str]:
    yield HEADING
    yield "The table counts answers by section of RFC 9309. An answer is undecided if the parser raised an exception.\n"
    yield f"| section | questions | {' | '.join(recorded)} |"
    yield "|---|---|" + "---|" * len(recorded)
    for section in SECTIONS:
        chosen = [case for case in everything if case.section == section]
        yield _row(section, chosen, recorded)
    yield _row("all", [case for case in everything if case.section != CONTESTED], recorded)
    yield f"| version | | {' | '.join(one['version'] for one in recorded.values())} |"
    yield f"| asked on | | {' | '.join(one['date'] for one in recorded.values())} |\n"


def _row(label: str, chosen: list[Case], recorded: Mapping[str, Any]) -> str:
    cells = [label, str(sum(len(case.questions) for case in chosen))]
    for one in recorded.values():
        count = Counter(how for case in chosen for how in judged(case, one["answers"][case.name]))
        cells.append(", ".join(f"{count[how]} {how}" for how in (RIGHT, WRONG, UNDECIDED) if count[how]))
    return f"| {' | '.join(cells)} |"


def _contested(recorded: Mapping[str, Any], everything: list[Case]) -> Iterator[str]:
    """Yield the lines of the section about contested questions: those to which parsers give different answers."""
    yield "## Contested questions\n"
    yield "Here the standard says nothing, or its readers disagree. None of the answers is wrong. The column `chosen`"
    yield f"has scrapy-rep's answer, and [{CONTESTED}.json]({CONTESTED}.json) says why. `not by` names the parsers that"
    yield "gave another answer or none. Questions to which all parsers give the same answer are left out.\n"
    yield "| case | chosen | not by |"
    yield "|---|---|---|"
    rows: dict[str, None] = {}  # each row once: a case may ask for several agents
    for case in (case for case in everything if case.section == CONTESTED):
        for at, question in enumerate(case.questions):
            chosen, others = WORDS[question.expected], [name for name in recorded if name != OURS]
            if not_by := [name for name in others if recorded[name]["answers"][case.name][at] != chosen]:
                names = ", ".join(not_by) if len(not_by) < len(others) else "all"
                rows[f"| {case.name.partition('/')[2]} | {question.expected} | {names} |"] = None
    yield from rows
    yield ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
