"""The types of the SDK, seen by the checkers that users run.

Files in `typing_cases`: `right_*` has no error, `wrong_*` has one on every line marked `# error`
and on no other.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).parent / "typing_cases"
ROOT = Path(__file__).parents[2]
FILES = sorted(CASES.glob("*.py"))

Found = set[tuple[str, int]]


def expected() -> Found:
    return {
        (path.name, number)
        for path in FILES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if line.endswith("# error")
    }


def run(*command: str | Path) -> str:
    tool, *arguments = command
    program = Path(sys.executable).parent / tool
    done = subprocess.run(
        [program, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=150
    )
    assert done.stdout, done.stderr
    return done.stdout


def test_both_kinds_of_cases_are_there() -> None:
    assert {path.name.partition("_")[0] for path in FILES} == {"right", "wrong"}
    assert len(expected()) > 10


def test_mypy(tmp_path: Path) -> None:
    told = run("mypy", "--strict", "--cache-dir", tmp_path / "cache", *FILES)
    found = {(Path(m[1]).name, int(m[2])) for m in re.finditer(r"(\S+\.py):(\d+): error:", told)}
    assert found == expected(), told


def test_pyright(tmp_path: Path) -> None:
    settings = {"typeCheckingMode": "strict", "include": [str(CASES)], "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    told = run("basedpyright", "--outputjson", "-p", tmp_path, "--pythonpath", Path(sys.executable))
    diagnostics = json.loads(told)["generalDiagnostics"]
    errors = [one for one in diagnostics if one["severity"] == "error"]
    found = {(Path(one["file"]).name, one["range"]["start"]["line"] + 1) for one in errors}
    assert found == expected(), "\n".join(f"{e['file']}: {e['message']}" for e in errors)


@pytest.fixture(autouse=True)
def _without_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
