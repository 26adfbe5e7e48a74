"""The `fairway` program as a person runs it: in a folder of its own, with a clean environment."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


class Ended(NamedTuple):
    status: int
    out: str
    err: str


def fairway(folder: Path, *words: str, **environment: str) -> Ended:
    """An environment variable that is empty is not given at all."""
    program = Path(sys.executable).parent / "fairway"
    given = {"PATH": "/usr/bin:/bin", "COLUMNS": "200", **environment}
    ran = subprocess.run(
        [program, *words],
        cwd=folder,
        env={name: value for name, value in given.items() if value},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Ended(ran.returncode, ran.stdout, ran.stderr)


Run = Callable[..., Ended]


def said(ended: Ended) -> Any:
    assert (ended.status, ended.err) == (0, ""), ended
    return json.loads(ended.out)


def sentence(ended: Ended) -> str:
    """What a command that went wrong says: one sentence, no stack."""
    assert ended.status == 1, ended
    assert ended.out == ""
    assert ended.err.startswith("fairway: ")
    assert len(ended.err.splitlines()) == 1, ended.err
    return ended.err.removeprefix("fairway: ").strip()
