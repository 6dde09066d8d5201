"""The pages for contributors agree with the code that they describe."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

from doc_pages import ROOT, first_names, marked, names, table
from test_imports import LAYERS

import scrapy_rep
from scrapy_rep.scrapy_internals import COSTS

PACKAGE = ROOT / "scrapy_rep"
INTERNALS = PACKAGE / "scrapy_internals"


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


def test_the_list_of_the_parts_of_all_checks() -> None:
    script = ROOT / ".ci" / "run"
    listed = subprocess.run([str(script), "--list"], capture_output=True, text=True, check=True).stdout
    parts = re.findall(r"^part_(\w+)", script.read_text("utf-8"), re.MULTILINE)
    assert sorted(re.findall(r"^\w+", listed, re.MULTILINE)) == sorted(parts)
    (matrix,) = re.findall(r"part: \[(.*)\]", (ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8"))
    assert set(matrix.split(", ")) <= set(parts)
