"""The pages for contributors agree with the code that they describe."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from doc_pages import ROOT, first_names, marked, names, table
from test_imports import LAYERS

import scrapy_rep
from scrapy_rep.scrapy_internals import COSTS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest requires it

PACKAGE = ROOT / "scrapy_rep"
INTERNALS = PACKAGE / "scrapy_internals"
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
TOX = PYPROJECT["tool"]["tox"]
WORKFLOW = (ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8")


def first_line(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]


def test_the_list_of_modules_has_the_first_line_of_each_docstring() -> None:
    """The page lists the folders and the modules beside them. Its command lists all modules."""
    said: list[str] = []
    folders: list[str] = []
    for row in marked("modules").splitlines():
        name, words = row.split(maxsplit=1)
        folders = [*folders[: (len(row) - len(row.lstrip())) // 2], name]
        said.append(f"{''.join(folders)}: {words}")
    listed = {*PACKAGE.glob("*.py"), *PACKAGE.rglob("__init__.py")}
    expected = {
        f"{path.relative_to(ROOT).as_posix().removesuffix('__init__.py')}: {first_line(path).removesuffix('.')}"
        for path in listed
    }
    assert sorted(said) == sorted(expected)

    ran = subprocess.run(marked("modules-command"), shell=True, cwd=ROOT, capture_output=True, text=True, check=True)
    printed = [line.removesuffix('"""') for line in ran.stdout.splitlines()]
    modules = {path: first_line(path) for path in PACKAGE.rglob("*.py")}
    assert all(modules.values())
    assert sorted(printed) == sorted(f'{path.relative_to(ROOT)}:"""{line}' for path, line in modules.items())


def test_the_package_speaks_of_modules_that_are_there() -> None:
    """The docstring of the package names modules and values, such as `protocol.words` and `storage.STORAGES`."""
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    said = [name.split(".") for name in re.findall(r"`(\w+\.[\w.]+)`", scrapy_rep.__doc__ or "")]
    paths = [PACKAGE.joinpath(*parts) for parts in said if parts[0] in rooms]
    assert len(paths) > 5
    for path in paths:
        home = (
            path.parent.with_suffix(".py") if path.parent.with_suffix(".py").is_file() else path.parent / "__init__.py"
        )
        is_there = path.is_dir() or path.with_suffix(".py").is_file() or path.name in home.read_text("utf-8")
        assert is_there, path


def test_the_layers() -> None:
    assert [tuple(line.split(", ")) for line in marked("layers").splitlines()] == list(LAYERS)


def test_what_is_used_of_scrapys_internals() -> None:
    ours = {path.name for path in INTERNALS.glob("*.py")} - {"__init__.py", "compat.py"}
    assert set(first_names("internals")) == ours
    code = "".join(path.read_text("utf-8") for path in INTERNALS.glob("*.py"))
    parts = {name.rpartition(".")[2] for cells in table("internals") for name in names(cells[1])}
    assert [part for part in parts if part not in code] == []


def test_what_a_crawl_loses_without_a_part_of_scrapy() -> None:
    assert {names(cells[0])[0]: cells[1] for cells in table("fallbacks")} == dict(COSTS)


def test_what_older_releases_of_scrapy_do_not_have() -> None:
    body = ast.parse((INTERNALS / "compat.py").read_text("utf-8")).body
    ours = [ast.unparse(node.target) for node in body if isinstance(node, ast.AnnAssign)]
    ours += [node.name for node in body if isinstance(node, ast.FunctionDef)]
    assert first_names("compat") == ours


def test_the_promises_of_the_simulation_are_numbered_as_in_the_code() -> None:
    code = (ROOT / "tests" / "simulation" / "promises.py").read_text("utf-8")
    promises = re.findall(r"^def \w+\(seen: Observations\) -> Iterator\[str\]", code, re.MULTILINE)
    assert [int(cells[0]) for cells in table("promises")] == list(range(1, len(promises) + 1))


def test_tox_knows_each_release_of_scrapy_before_the_newest() -> None:
    """The oldest is tested as a whole, and by its first release. The releases in between get the smoke tests."""
    (oldest,) = re.findall(r"'scrapy>=2\.(\d+)'", str(PYPROJECT["project"]["dependencies"]))
    known = {row["condition"].removeprefix("factor."): row["then"] for row in TOX["env_run_base"]["deps"]}
    later = range(int(oldest) + 1, int(oldest) + len(known))
    expected = {f"scrapy2{oldest}": [f"scrapy==2.{oldest}.0"]}
    assert known == expected | {f"scrapy2{minor}": [f"scrapy==2.{minor}.*"] for minor in later}
    assert known[f"scrapy2{oldest}"][0] in TOX["env"]["lowest"]["deps"]
    listed = [name.partition("-")[2] for name in TOX["env_list"] if name.startswith("py3")]
    assert sorted(listed) == ["", f"scrapy2{oldest}", *(f"scrapy2{minor}-smoke" for minor in later)]
    (matrix,) = re.findall(r"scrapy: \[(.*)\]", WORKFLOW)
    assert matrix == ", ".join(f'"-{name}"' for name in known) + ', ""'


def test_tox_tests_the_lower_bounds_of_the_extras() -> None:
    extras = PYPROJECT["project"]["optional-dependencies"]
    bounds = {bound.replace(">=", "==") for extra in ("archive", "redis", "usage") for bound in extras[extra]}
    assert len(bounds) == 3
    assert bounds <= set(TOX["env"]["lowest"]["deps"])


def test_the_environments_of_tox_that_contributors_and_workflows_name() -> None:
    texts = {path: path.read_text("utf-8") for path in ROOT.glob(".github/**/*") if path.is_file()}
    told = set(re.findall(r"(?:tox|\.ci/run) -e ([\w,]+)", "".join(texts.values())))
    assert {"lint,docs", "lowest", "package", "links"} <= told
    (matrix,) = re.findall(r"check: \[(.*)\]", WORKFLOW)
    names = {*",".join(told).split(","), *matrix.split(", "), *TOX["env_list"]}
    assert {name for name in names if not name.startswith("py3")} <= set(TOX["env"])
    assert {name for name in TOX["env_list"] if not name.startswith("py3")} == set(matrix.split(", "))
