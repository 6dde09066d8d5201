"""The pictures of the docs are up to date: docs/pictures.py and docs/report_picture.py would make the same ones."""

from __future__ import annotations

import importlib.util
import json
import re
from types import ModuleType

import pytest
from doc_pages import ROOT
from processes import run_python

from scrapy_rep.protocol.lifecycle import State

PICTURES = ("origin.svg", "request.svg", "fetch.svg", "terminal.svg")


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return loaded("pictures")


@pytest.mark.site
def test_the_report_is_up_to_date() -> None:
    # With the newest Scrapy: older ones name the exception of a timeout otherwise.
    done = run_python("docs/report_picture.py", "--words", cwd=ROOT)
    assert json.loads(done.stdout) == loaded("report_picture").words_of_picture(), "run python docs/report_picture.py"


@pytest.mark.parametrize("name", PICTURES)
def test_it_is_up_to_date(script: ModuleType, name: str) -> None:
    assert (ROOT / "docs" / name).read_text("utf-8") == script.PICTURES[name](), "run python docs/pictures.py"


def test_each_state_and_its_moves_are_there(script: ModuleType) -> None:
    assert set(script.PLACES) == set(script.SHORT) == set(State)
    assert {state for before, _by, after in script.moves() for state in (before, after)} == set(State)


def test_the_moves_that_are_notes_and_no_arrows(script: ModuleType) -> None:
    moves = script.moves()
    assert {state for state in State if (state, script.ANSWER, State.FRESH) in moves} == set(State) - {State.FRESH}
    assert {after for _, by, after in moves if by == script.UNSEEN} == {State.UNKNOWN, State.STALE}


@pytest.mark.parametrize("name", PICTURES)
def test_the_modules_that_it_names_exist(name: str) -> None:
    text = (ROOT / "docs" / name).read_text("utf-8")
    named = set(re.findall(r"\b((?:fetching|protocol|storage|waiting)\.\w+|gate|refusals)\b(?=[:, ]|</text>)", text))
    paths = [ROOT / "scrapy_rep" / module.replace(".", "/") for module in named]
    assert [path for path in paths if not path.is_dir() and not path.with_suffix(".py").is_file()] == []
