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

from fairway.runtime.told_to_end import ENDING

BY_SIGNAL = 128
SECONDS_MAX = 60.0


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder for temporary files that PostgreSQL's own user may enter, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="fairway-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


BENCH, LAB = ("bench", "engine", "--tenants", "10"), ("lab", "front-door")


@pytest.mark.parametrize(
    ("words", "number"),
    [
        (LAB, signal.SIGTERM),
        *(pytest.param(BENCH, one, marks=pytest.mark.slow) for one in ENDING),
        *(pytest.param(LAB, one, marks=pytest.mark.slow) for one in ENDING[1:]),
    ],
    ids=lambda one: one[0] if isinstance(one, tuple) else one.name,
)
def test_a_signal_ends_its_programs_and_their_folder(
    words: tuple[str, ...], number: signal.Signals, temporary: Path
) -> None:
    command = [sys.executable, "-m", "fairway", *words]
    environment = {"PATH": os.environ["PATH"], "TMPDIR": str(temporary)}
    with subprocess.Popen(command, cwd=temporary, env=environment, stderr=subprocess.PIPE) as run:
        _until(lambda: _running(temporary, "worker"))
        assert _running(temporary, "postgres")
        run.send_signal(number)
        _, said = run.communicate(timeout=SECONDS_MAX)
    assert run.returncode == BY_SIGNAL + number
    assert _running(temporary) == []
    assert list(temporary.glob("fairway-rig-*")) == []
    assert b"Traceback" not in said


@pytest.mark.slow
def test_a_measurement_that_is_killed_leaves_no_process(temporary: Path) -> None:
    command = [sys.executable, "-m", "fairway", *LAB]
    environment = {"PATH": os.environ["PATH"], "TMPDIR": str(temporary)}
    with subprocess.Popen(command, cwd=temporary, env=environment, stderr=subprocess.PIPE) as run:
        _until(lambda: _running(temporary, "worker"))
        run.kill()
        run.communicate(timeout=SECONDS_MAX)
    _until(lambda: not _running(temporary))


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
