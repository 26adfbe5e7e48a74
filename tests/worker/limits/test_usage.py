"""What a tree of processes uses, and that all of it dies: real processes throughout."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairway.core.run.process_limits import Usage
from fairway.worker.limits import usage

#: Starts a child that starts a daemon in a session of its own and ends; then does as it is told.
FAMILY = """
import os, subprocess, sys, time
from fairway.worker.limits.confine import adopt_orphans
adopt_orphans()
daemon = "import time; time.sleep(60)"
middle = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {daemon!r}], start_new_session=True)"
subprocess.run([sys.executable, "-c", middle], check=True)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print("ready", flush=True)
"""  # noqa: E501  (a program in a string)


@pytest.fixture
def family() -> Iterator[subprocess.Popen[str]]:
    root = _start(FAMILY + "time.sleep(60)")
    yield root
    usage.kill_tree(root.pid)
    root.wait(5)


def _start(program: str) -> subprocess.Popen[str]:
    root = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert root.stdout is not None
    assert root.stdout.readline() == "ready\n"
    return root


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def gone(pid: int) -> bool:
    try:
        state = Path("/proc", str(pid), "stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:
        return True
    return state == b"Z"


def test_daemons_belong_to_the_tree(family: subprocess.Popen[str]) -> None:
    assert len(usage.tree(family.pid)) == 3
    assert usage.usage_of(family.pid).processes >= 3


def test_all_of_a_tree_dies(family: subprocess.Popen[str]) -> None:
    pids = usage.tree(family.pid)
    usage.kill_tree(family.pid)
    until(lambda: all(map(gone, pids)))


def test_descendants_die_and_the_root_lives_on(family: subprocess.Popen[str]) -> None:
    pids = usage.tree(family.pid)[1:]
    assert usage.kill_descendants(family.pid) == 2
    until(lambda: all(map(gone, pids)))
    assert family.poll() is None


def test_processor_time_and_memory_are_those_of_all() -> None:
    spin = "t = time.process_time() + 0.4\nwhile time.process_time() < t: pass\n"
    hold = "x = bytearray(64 << 20)\nprint('ready', flush=True)\n"
    root = _start(f"import time\n{spin}{hold}time.sleep(60)")
    try:
        used = usage.usage_of(root.pid)
        assert used.cpu_ms >= 350
        assert used.memory_bytes >= 64 << 20
        assert usage.usage_below(root.pid).cpu_ms >= 350
        assert usage.usage_below(root.pid).memory_bytes == 0
    finally:
        usage.kill_tree(root.pid)
        root.wait(5)


def test_a_reaper_counts_for_nothing(family: subprocess.Popen[str]) -> None:
    whole, below = usage.usage_of(family.pid), usage.usage_below(family.pid)
    assert below.processes == 2
    assert 0 < below.memory_bytes < whole.memory_bytes
    assert 0 < usage.proportional_bytes_below(family.pid) < whole.memory_bytes


def test_one_descendant_may_be_spared(family: subprocess.Popen[str]) -> None:
    _, spared, other = usage.tree(family.pid)
    assert usage.kill_descendants(family.pid, but=spared) == 1
    until(lambda: gone(other))
    assert not gone(spared)


def test_a_process_may_have_any_name() -> None:
    """A name is bytes that a job chooses: who cannot read it must not let the process live."""
    name = "import ctypes, time; ctypes.CDLL(None).prctl(15, b'(\\xff) \\xfe', 0, 0, 0)\n"
    work = "while time.process_time() < 0.1: pass\n"  # several of the kernel's ticks
    root = _start(f"{name}{work}print('ready', flush=True)\ntime.sleep(60)")
    try:
        assert usage.usage_of(root.pid).processes >= 1
        assert usage.cpu_ms_of(root.pid) > 0
        usage.kill_tree(root.pid)
        until(lambda: root.poll() is not None)
    finally:
        root.kill()
        root.wait(5)


def test_who_may_not_be_killed_keeps_nobody_else_alive(
    family: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A set-user-id program runs as somebody else: signals of ours are refused."""
    _, foreign, other = usage.tree(family.pid)
    kill = os.kill

    def refused(pid: int, number: int) -> None:
        if pid == foreign:
            raise PermissionError(1, "Operation not permitted")
        kill(pid, number)

    with monkeypatch.context() as patch:
        patch.setattr(os, "kill", refused)
        usage.kill_tree(family.pid)
    until(lambda: gone(other) and gone(family.pid))
    kill(foreign, signal.SIGKILL)


def test_who_is_gone_uses_nothing() -> None:
    root = subprocess.Popen([sys.executable, "-c", ""])
    root.wait(10)
    assert usage.usage_of(root.pid) == Usage()
    usage.kill_tree(root.pid)
