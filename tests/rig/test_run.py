"""A measurement that is told to end leaves nothing: no process, no folder."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

TERMINATED = 143
SECONDS_MAX = 60.0


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder for temporary files that PostgreSQL's own user may enter, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="fairway-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("bench", "engine", "--tenants", "10"), marks=pytest.mark.slow),
        ("lab", "front-door"),
    ],
    ids=lambda w: w[0],
)
def test_sigterm_ends_its_programs_and_their_folder(
    words: tuple[str, ...], temporary: Path
) -> None:
    command = [sys.executable, "-m", "fairway", *words]
    environment = {"PATH": os.environ["PATH"], "TMPDIR": str(temporary)}
    with subprocess.Popen(command, cwd=temporary, env=environment, stderr=subprocess.PIPE) as run:
        _until(lambda: _running(temporary, "worker"))
        assert _running(temporary, "postgres")
        run.send_signal(signal.SIGTERM)
        _, said = run.communicate(timeout=SECONDS_MAX)
    assert run.returncode == TERMINATED
    assert _running(temporary) == []
    assert list(temporary.glob("fairway-rig-*")) == []
    assert b"Traceback" not in said


def _until(holds: Callable[[], object]) -> None:
    ends_at = time.monotonic() + SECONDS_MAX
    while not holds():
        assert time.monotonic() < ends_at
        time.sleep(0.1)


def _running(folder: Path, word: str = "") -> list[str]:
    """The command lines of processes whose log, data or environment is in this folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            environment = (process / "environ").read_bytes().decode(errors="replace")
        except OSError:
            continue  # it ended while we looked
        is_ours = f"TMPDIR={folder}" in environment or str(folder) in line
        if is_ours and word in line:
            found.append(line)
    return found
