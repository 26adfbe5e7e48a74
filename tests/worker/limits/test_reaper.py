"""The process above a runner: it ends as the runner does, and leaves no zombie and no orphan."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from fairway.worker.limits.usage import is_measurable

pytestmark = pytest.mark.skipif(not is_measurable(), reason="there is no /proc here")

GONE_SECONDS = 10.0  # on any machine; an orphan here sleeps for ten minutes

ABOVE = """
import os, signal, subprocess, sys, time
from pathlib import Path
from fairway.worker.limits.reaper import stand_above
stand_above([])
"""

#: A grandchild in a session of its own, whose parent ends: the reaper takes it in.
ORPHANS = """
parent = ("import subprocess, sys; subprocess.Popen([sys.executable, '-S', '-c',"
          " 'import time; time.sleep({seconds})'], start_new_session=True)")
assert subprocess.run([sys.executable, "-S", "-c", parent]).returncode == 0
family = Path(f"/proc/{{os.getppid()}}/task/{{os.getppid()}}/children")
children = lambda: family.read_text().split()
"""


def run(program: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-c", ABOVE + program], capture_output=True, timeout=60)


@pytest.mark.parametrize("status", [0, 3, 255])
def test_it_ends_with_the_status_of_its_runner(status: int) -> None:
    assert run(f"os._exit({status})").returncode == status


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGXCPU])
def test_it_ends_by_the_signal_that_ended_its_runner(number: signal.Signals) -> None:
    done = run(f"signal.signal({int(number)}, signal.SIG_DFL) if {int(number)} != 9 else 0\n"
               f"os.kill(os.getpid(), {int(number)})")  # fmt: skip
    assert done.returncode == -number


def test_the_exit_status_of_its_own_children_stays_with_the_runner() -> None:
    child = "[sys.executable, '-S', '-c', 'raise SystemExit(7)']"
    done = run(f"print(subprocess.run({child}).returncode, flush=True); os._exit(0)")
    assert done.stdout == b"7\n"


def test_an_orphan_that_ends_is_no_zombie() -> None:
    wait = "\nwhile len(children()) > 1: time.sleep(0.01)\nprint('reaped', flush=True); os._exit(0)"
    assert run(ORPHANS.format(seconds=0.05) + wait).stdout == b"reaped\n"


def test_an_orphan_does_not_outlive_its_runner() -> None:
    wait = "\nwhile len(children()) < 2: time.sleep(0.01)"
    say = wait + "\nprint(*children(), os.getpid(), flush=True); os._exit(0)"
    *family, runner = map(int, run(ORPHANS.format(seconds=600) + say).stdout.split())
    (orphan,) = set(family) - {runner}
    until = time.monotonic() + GONE_SECONDS
    while _lives(orphan):  # it was killed, and is gone once it had the processor for that
        assert time.monotonic() < until
        time.sleep(0.01)


def _lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
