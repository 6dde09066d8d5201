"""The processes that the tests start tell of what they leave behind. They end without Python's own clean-up."""

from __future__ import annotations

from pathlib import Path

import pytest
from processes import run_python

HEAD = (
    "import asyncio, atexit, sys\nfrom twisted.internet.defer import fail\nasync def wait(): await asyncio.sleep(9)\n"
)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        pytest.param("sys.kept = wait()", "'wait' was never awaited", id="coroutine-that-is-kept"),
        pytest.param("wait()", "'wait' was never awaited", id="coroutine"),
        pytest.param("sys.loop = asyncio.new_event_loop()\nsys.loop.create_task(wait())", "is pending", id="task"),
        pytest.param("sys.kept = fail(ValueError('lost'))", "Unhandled error in Deferred", id="error"),
        pytest.param("atexit.register(print, 'the end', file=sys.stderr)", "the end", id="at-exit"),
    ],
)
def test_what_is_left_is_told(tmp_path: Path, code: str, told: str) -> None:
    (tmp_path / "script.py").write_text(HEAD + code)
    ended = run_python(str(tmp_path / "script.py"))
    assert (told in ended.stderr, ended.returncode) == (True, 0)


@pytest.mark.parametrize(
    ("code", "status", "stderr"),
    [
        ("print('said')", 0, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("sys.exit('wrong')", 1, "wrong\n"),
        ("raise KeyError('k')", 1, "KeyError: 'k'\n"),
    ],
)
def test_the_exit_status_is_pythons(tmp_path: Path, code: str, status: int, stderr: str) -> None:
    (tmp_path / "script.py").write_text(HEAD + code)
    ended = run_python(str(tmp_path / "script.py"))
    assert (ended.returncode, ended.stderr[-len(stderr) :] if stderr else ended.stderr) == (status, stderr)
