"""docs/tasks.md, "I want to ...": each task takes three lines or so, has a link, and names only settings that exist."""

from __future__ import annotations

import re

import pytest
from doc_pages import PAGES

from scrapy_rep.settings import SETTINGS

_, *TASKS = re.split(r"^### ", PAGES["docs/tasks.md"], flags=re.MULTILINE)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.partition("\n")[0])
def test_a_task_is_short_and_has_a_link(task: str) -> None:
    _heading, text, *_others = re.split(r"\n{2,}", task)
    assert len(text.splitlines()) <= 4
    assert "](" in text
    assert set(re.findall(r"REP_\w+", text)) <= set(SETTINGS)
