"""The sandbox on this host: every program its verdict, nothing gets out, nothing stays behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from examples.judge import places
from examples.judge.judging import Trial, judge
from examples.judge.languages import LANGUAGES
from examples.judge.sandbox import Sandbox, Task
from examples.judge.seccomp import filter_program
from examples.judge.trouble import SandboxUnavailable
from examples.judge.verdicts import Limits, Ran
from examples.judge.walls import Level
from tests.acceptance.processes import command_of
from tests.examples.programs import EVERY, PYTHON, Program

MB = 1 << 20
ROOT = Path(__file__).parents[2]


def find() -> Sandbox | None:
    try:
        return Sandbox.find()
    except SandboxUnavailable:
        return None


SANDBOX = find()
needs_sandbox = pytest.mark.skipif(SANDBOX is None, reason="no sandbox level works on this host")
#: The strongest one every day, the others in the soak.
every_level = pytest.mark.parametrize(
    "level",
    [
        pytest.param(one, id=one.value, marks=[pytest.mark.slow] if place else [])
        for place, one in enumerate(Level)
    ],
)


def at(level: Level) -> Sandbox:
    try:
        return Sandbox.find(level.value)
    except SandboxUnavailable as error:
        pytest.skip(str(error))


def verdict(sandbox: Sandbox, program: Program) -> str:
    language = LANGUAGES[program.language]
    if not language.is_installed:
        pytest.skip(f"{language.needs} is not installed")
    limits = Limits(cpu_seconds=program.cpu_seconds, memory_bytes=program.memory_mb * MB)
    tests = [Trial(b"20 22\n", b"42\n")]
    judged = judge(sandbox, language, program.source.encode(), tests, limits)
    return f"{judged['verdict']}" if judged["sandbox"] == sandbox.level else "another level"


def run(sandbox: Sandbox, source: str, limits: Limits, stdin: bytes = b"") -> Ran:
    with places.opened() as place:
        words = ("/usr/bin/python3", "-I", "-c", source)
        return sandbox.run(Task(words, place, limits, stdin))


@needs_sandbox
@pytest.mark.parametrize("program", EVERY, ids=lambda one: f"{one.language}: {one.name}")
def test_every_program_gets_its_verdict(program: Program) -> None:
    assert SANDBOX is not None
    assert verdict(SANDBOX, program) == program.verdict


@every_level
@pytest.mark.parametrize("name", ["right", "endless loop", "memory hog", "fork bomb", "network"])
def test_weaker_levels_hold_the_same(level: Level, name: str) -> None:
    program = next(one for one in PYTHON if one.name == name)
    assert verdict(at(level), program) == program.verdict


@every_level
def test_the_program_is_an_ordinary_process_and_its_signals_have_names(level: Level) -> None:
    sandbox = at(level)
    assert run(sandbox, "import os; os.abort()", Limits()).exit_code == -signal.SIGABRT
    assert run(sandbox, "import os; os._exit(134)", Limits()).exit_code == 134
    over = run(sandbox, "while True: pass", Limits(cpu_seconds=1.0))
    assert over.exit_code == -signal.SIGXCPU
    ends_itself = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
    assert run(sandbox, ends_itself, Limits()).exit_code == -signal.SIGTERM


@every_level
def test_the_processor_time_of_children_counts(level: Level) -> None:
    burns = (
        "import os, time\nfor _ in range(3):\n    if os.fork() == 0:\n"
        "        while time.process_time() < 0.2: pass\n        os._exit(0)\n"
        "os.wait()\n"  # for one of them: the others are nobody's when it ends
        "time.sleep(1)\n"
    )
    ran = run(at(level), burns, Limits(cpu_seconds=5.0))
    assert ran.exit_code == 0
    assert 0.6 < ran.cpu_seconds < 1.2


@every_level
def test_the_usual_ways_to_the_input_are_open(level: Level) -> None:
    reads = "print(open('/dev/stdin').read(), open(0).read(), file=open('/dev/stdout', 'w'))"
    assert run(at(level), reads, Limits(), b"20 22").stdout.split() == [b"20", b"22", b"20", b"22"]


@every_level
def test_nothing_stays_behind(level: Level) -> None:
    mark = f"left-behind-{os.getpid()}"
    source = f"import os, time\nos.fork()\nos.fork()\ntime.sleep(600)  # {mark}\n"
    assert run(at(level), source, Limits(cpu_seconds=0.2)).was_stopped
    assert _listed(mark) == 0


@every_level
def test_a_run_ends_with_the_judge_that_started_it(level: Level) -> None:
    """Killed in the middle of it, without a chance to tidy up."""
    sandbox, mark = at(level), f"orphaned-{os.getpid()}-{level.name}-"
    code = (
        "from examples.judge.sandbox import *\nfrom examples.judge.walls import Level\n"
        f"sandbox = Sandbox(Level({sandbox.level!r}))\nwith places.opened() as place:\n"
        f"    words = ('/usr/bin/python3', '-c', 'import time; time.sleep(60)  # {mark}')\n"
        "    sandbox.run(Task(words, place, Limits(cpu_seconds=10.0)))\n"
    )
    with tempfile.TemporaryDirectory(prefix="orphaned-", dir="/tmp") as folder:
        os.chmod(folder, 0o711)
        child = subprocess.Popen(
            [sys.executable, "-c", code], cwd=ROOT, env=os.environ | {"TMPDIR": folder}
        )
        _until(lambda: _listed(mark) >= 4)  # judge, walls, warden, program
        child.kill()
        child.wait()
        _until(lambda: _listed(mark) == 0)


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _listed(mark: str) -> int:
    """Processes, zombies apart, whose command line has this in it."""
    return sum(mark in command_of(int(pid)) for pid in os.listdir("/proc") if pid.isdigit())


def test_where_nothing_works_it_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never silently none."""

    def broken(self: Sandbox, task: Task) -> None:
        raise SandboxUnavailable("not here")

    monkeypatch.setattr(Sandbox, "run", broken)
    with pytest.raises(SandboxUnavailable, match="bubblewrap"):
        Sandbox.find()


def test_walls_that_do_not_stand_are_no_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program ran well, and saw too much."""

    def open_house(self: Sandbox, task: Task) -> Ran:
        sees = [7, 65534, [], ["here"], os.listdir("/")]
        return Ran(0, 0.0, 0, json.dumps(sees).encode(), b"")

    monkeypatch.setattr(Sandbox, "run", open_house)
    with pytest.raises(SandboxUnavailable, match="walls do not stand"):
        Sandbox.find()


@needs_sandbox
def test_a_level_that_is_asked_for_is_the_only_one() -> None:
    with pytest.raises(SandboxUnavailable, match="namespaces"):
        Sandbox.find("none")


def test_root_runs_nothing_as_itself() -> None:
    if os.geteuid() != 0:
        pytest.skip("we are not root")
    with pytest.raises(ValueError, match="as itself"), places.opened() as place:
        Sandbox(Level.ROOMS).run(Task(("/usr/bin/id",), place._replace(uid=None), Limits()))


def test_the_filter_is_whole_jumps_inside_itself_and_ends_with_a_word() -> None:
    for machine in ("x86_64", "aarch64"):
        program = filter_program(machine)
        steps = [program[at : at + 8] for at in range(0, len(program), 8)]
        assert steps[-1][0] == 0x06  # the last step returns
        for place, step in enumerate(steps):
            if step[0] in (0x15, 0x35, 0x45):
                assert place + 1 + max(step[2], step[3]) < len(steps)
    with pytest.raises(SandboxUnavailable, match="pdp11"):
        filter_program("pdp11")
