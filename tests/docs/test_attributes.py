"""The attributes that the pages name are there: `Verdict.reason`, `verdict.rule`, the verdict's `purpose`."""

from __future__ import annotations

import ast
import re
from collections import defaultdict

import pytest
from doc_pages import PAGES, ROOT, prose

# What the pages call an object -> its class.
CLASSES = {
    "error": "ForbiddenByRobots",
    "info": "OriginInfo",
    "policy": "RobotsPolicy",
    "robots": "RobotsTxt",
    "rule": "Rule",
    "statement": "Statement",
    "usage": "Usage",
    "verdict": "UsageVerdict",
}
FILES = {"db", "html", "jsonl", "md", "py", "svg", "toml", "txt"}


def attributes_of_classes() -> dict[str, set[str]]:
    """Return the names in the body of each class of the package, and of the bases that it has in the package."""
    found: dict[str, set[str]] = defaultdict(set)
    bases: dict[str, list[str]] = {}
    for path in sorted(ROOT.glob("scrapy_rep/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                text = ast.unparse(node)
                found[node.name] |= set(re.findall(r"^    (?:async )?(?:def )?(\w+)(?: = |: |\()", text, re.MULTILINE))
                found[node.name] |= set(re.findall(r"\bself\.(\w+)(?:: .*)? = ", text))
                bases[node.name] = [ast.unparse(base).rpartition(".")[2].partition("[")[0] for base in node.bases]
    for _ in range(3):  # bases of bases
        for name, names in bases.items():
            found[name].update(*(found[base] for base in names if base in found))
    return found


OURS = attributes_of_classes()


def attributes_named_in(text: str) -> list[tuple[str, str]]:
    """Return the names of objects or classes in the text, each with the name of its attribute."""
    code = re.findall(r"`([^`\n]+)`", text)
    found = [pair for part in code for pair in re.findall(r"(?<![\w./-])(\w+)\.(\w+)", part)]
    for noun, listed in re.findall(r"\b`?(\w+)`?'s ((?:`\w+`(?:,? and |, )?)+)", text):
        found += [(noun, attribute) for attribute in re.findall(r"`(\w+)`", listed)]
    return [(owner, attribute) for owner, attribute in found if attribute not in FILES and attribute[0] != "_"]


@pytest.mark.parametrize("page", sorted(PAGES.keys() - {"CHANGELOG.md"}))  # which names what has gone, too
def test_the_attributes_on_a_page_exist(page: str) -> None:
    for owner, attribute in attributes_named_in(prose(page)):
        names = OURS.get(CLASSES.get(owner, owner))
        assert names is None or attribute in names, f"{owner}.{attribute}"


def test_what_is_found() -> None:
    text = "The verdict's `purpose`, `decided_by` and `usage`. `Usage.of(info.robots, url)`, `robots.txt`, `a/b.c`"
    assert attributes_named_in(text) == [
        *(("Usage", "of"), ("info", "robots")),
        *(("verdict", "purpose"), ("verdict", "decided_by"), ("verdict", "usage")),
    ]
    assert {"purpose", "reason", "decided_by", "allowed"} <= OURS["UsageVerdict"]
    assert "statement" not in OURS["UsageVerdict"]
