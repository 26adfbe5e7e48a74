"""The `fairway` program as a person runs it: in a folder of its own, with a clean environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


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
