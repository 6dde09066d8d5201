"""The recipe "To delete a feature" in `scrapy_rep.extensions` is true."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from doc_pages import ROOT

import scrapy_rep.extensions
from scrapy_rep.extensions import EXTENSIONS

FEATURES = sorted({path.partition(".")[0] for path in EXTENSIONS})
IMPORT_ALL = """
import importlib, pkgutil, scrapy_rep
for module in pkgutil.walk_packages(scrapy_rep.__path__, "scrapy_rep."):
    importlib.import_module(module.name)
"""


def modules_that_call(feature: str) -> list[str]:
    """The modules that, as the recipe says, call functions of the feature."""
    row = re.search(rf"^- `{feature}`: ([^.]*) calls? its functions", scrapy_rep.extensions.__doc__ or "", re.MULTILINE)
    return re.findall(r"`(\w+)`", row[1]) if row else []


@pytest.mark.parametrize("feature", FEATURES)
def test_the_recipe_names_the_modules_that_call_a_feature(feature: str) -> None:
    texts = {path.stem: path.read_text("utf-8") for path in (ROOT / "scrapy_rep").glob("*.py")}
    callers = [name for name, text in texts.items() if f"scrapy_rep.extensions.{feature}" in text]
    assert sorted(callers) == modules_that_call(feature)


@pytest.mark.parametrize("feature", [feature for feature in FEATURES if not modules_that_call(feature)])
def test_without_a_feature_the_other_modules_are_imported(feature: str, tmp_path: Path) -> None:
    package = tmp_path / "scrapy_rep"
    shutil.copytree(ROOT / "scrapy_rep", package, ignore=shutil.ignore_patterns("__pycache__"))
    folder = package / "extensions" / feature
    shutil.rmtree(folder) if folder.is_dir() else folder.with_suffix(".py").unlink()
    table = package / "extensions" / "__init__.py"
    table.write_text(re.sub(rf'    "{feature}\..*\n', "", table.read_text("utf-8")), "utf-8")
    command = [sys.executable, "-c", IMPORT_ALL]
    # Without this variable, the coverage of the copy is not measured.
    variables = {name: value for name, value in os.environ.items() if name != "COVERAGE_PROCESS_START"}
    ended = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert ended.stderr == ""
