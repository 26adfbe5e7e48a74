"""Control groups: whose tree it is, what is written where, and the real thing where there is one.

The kernel's files are stood in for by plain ones where a test is about what we write; a real group
is made only below a group that is ours by the same rule as in a worker.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fairway.core.run.process_limits import RunLimits
from fairway.worker.limits import cgroups
from fairway.worker.limits.cgroups import Home, Room, find_homes
from fairway.worker.limits.enforcement_level import EnforcementLevel

V2 = "cgroup2 {root} cgroup2 rw,nosuid 0 0\n"
V1 = "cgroup {root}/memory cgroup rw,memory 0 0\ncgroup {root}/pids cgroup rw,pids 0 0\n"


class Machine:
    """The files of a kernel, as far as they are read."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self._patch = monkeypatch

    def has(self, mounts: str, membership: str) -> None:
        for name, text in (("mounts", mounts.format(root=self.root)), ("membership", membership)):
            (self.root / name).write_text(text)
        self._patch.setattr(cgroups, "MOUNTS", self.root / "mounts")
        self._patch.setattr(cgroups, "MEMBERSHIP", self.root / "membership")
        self._patch.setattr(cgroups, "_is_usable", lambda *_: True)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    return Machine(tmp_path, monkeypatch)


def test_the_root_that_a_container_sees_is_ours(machine: Machine) -> None:
    machine.has(V2, "0::/\n")
    assert [(home.controller, home.version, home.path) for home in find_homes()] == [
        ("memory", 2, machine.root),
        ("pids", 2, machine.root),
    ]


def test_a_group_that_somebody_else_made_is_not(machine: Machine) -> None:
    machine.has(V2 + V1, "0::/system.slice/x.service\n4:memory:/box/7\n5:pids:/box/7\n")
    assert find_homes() == []


def test_a_group_that_is_delegated_is_ours(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.has(V2, "0::/system.slice/x.service\n")
    monkeypatch.setattr(os, "getxattr", lambda path, name: b"1")
    assert {home.path for home in find_homes()} == {machine.root / "system.slice/x.service"}


def test_a_group_that_the_operator_names_is_ours(machine: Machine) -> None:
    machine.has(V1, "4:memory:/box/7\n5:pids:/\n")
    assert {home.path for home in find_homes("jobs")} == {
        machine.root / "memory/jobs",
        machine.root / "pids/jobs",
    }


def test_each_controller_is_found_where_it_is(machine: Machine) -> None:
    """As on many machines: version 2 without the controllers, and version 1 beside it."""
    (machine.root / "cgroup.controllers").write_text("hugetlb\n")
    machine.has(V2 + V1, "0::/\n4:memory:/box/7\n5:pids:/\n")
    assert [(home.controller, home.version) for home in find_homes()] == [("pids", 1)]


def test_nothing_is_assumed_where_there_are_no_groups(machine: Machine) -> None:
    machine.has("", "")
    assert find_homes() == []
    words = EnforcementLevel([], is_measurable=False, is_linux=False).words()
    assert words["processes"] in ("nothing", "rlimit of the user")
    assert words["memory"] == "rlimit of each process"


@pytest.mark.parametrize(
    ("version", "files"),
    [
        (2, {"memory.max": "1000", "memory.swap.max": "0", "pids.max": "8"}),
        (1, {"memory.limit_in_bytes": "1000", "memory.memsw.limit_in_bytes": "1000",
             "pids.max": "8"}),
    ],
)  # fmt: skip
def test_limits_are_written_as_each_version_wants_them(
    tmp_path: Path, version: int, files: dict[str, str]
) -> None:
    homes = [Home(name, version, tmp_path) for name in ("memory", "pids")]
    Room(homes, "one", RunLimits(memory_bytes=1000, processes=7))
    room = tmp_path / "one"
    assert {path.name: path.read_text() for path in room.iterdir()} == files


def test_evidence_is_read_from_either_version(tmp_path: Path) -> None:
    for version, file in ((2, "memory.events"), (1, "memory.oom_control")):
        home = tmp_path / str(version)
        home.mkdir()
        room = Room(
            [Home("memory", version, home), Home("pids", version, home)], "one", RunLimits()
        )
        assert (room.kills_for_memory(), room.refused_processes()) == (0, 0)
        (home / "one" / file).write_text("low 0\noom_kill 2\n")
        (home / "one" / "pids.events").write_text("max 5\n")
        assert (room.kills_for_memory(), room.refused_processes()) == (2, 5)


def test_what_dead_workers_left_is_swept(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait(10)
    for pid in (ended.pid, os.getpid()):
        (tmp_path / f"fairway-{pid}-1").mkdir()
    (tmp_path / "another").mkdir()
    cgroups.sweep([Home("pids", 1, tmp_path)])
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "another",
        f"fairway-{os.getpid()}-1",
    ]


def test_a_real_group_refuses_and_kills() -> None:
    homes = [home for home in find_homes() if home.controller == "pids"]
    if not homes:
        pytest.skip("no group of this machine is ours")
    room = Room(homes, f"fairway-{os.getpid()}-test", RunLimits(processes=4))
    program = (
        "import os, sys, time; sys.stdin.readline()\n"
        "for _ in range(10):\n"
        "    if os.fork() == 0: time.sleep(30); os._exit(0)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        room.take_in(child.pid)
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.close()
        assert child.wait(20) != 0, "more processes than allowed"
        assert room.refused_processes() > 0
    finally:
        room.kill()
        child.kill()
        child.wait(5)
    deadline = time.monotonic() + 10
    while not room.remove():
        assert time.monotonic() < deadline, "something outlived its group"
        time.sleep(0.02)
