"""The sandbox on this host: every program its verdict, nothing gets out, nothing stays behind."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from examples.judge.judging import Trial, judge
from examples.judge.languages import LANGUAGES
from examples.judge.sandbox import Sandbox, SandboxUnavailable, Task
from examples.judge.seccomp import filter_program
from examples.judge.verdicts import Limits
from examples.judge.walls import Level
from tests.examples.programs import EVERY, PYTHON, Program

MB = 1 << 20
#: What the weakest level cannot hold: it shares the host's files.
NEEDS_OWN_ROOT = {"reads the host while compiling", "traces another", "secrets of the worker"}


def find() -> Sandbox | None:
    try:
        return Sandbox.find()
    except SandboxUnavailable:
        return None


SANDBOX = find()
needs_sandbox = pytest.mark.skipif(SANDBOX is None, reason="no sandbox level works on this host")


def verdict(sandbox: Sandbox, program: Program) -> str:
    language = LANGUAGES[program.language]
    if not language.is_installed:
        pytest.skip(f"{language.needs} is not installed")
    if sandbox.level == Level.NAMESPACES.value and program.name in NEEDS_OWN_ROOT:
        pytest.skip("this level shares the host's files")
    limits = Limits(cpu_seconds=program.cpu_seconds, memory_bytes=program.memory_mb * MB)
    tests = [Trial(b"20 22\n", b"42\n")]
    judged = judge(sandbox, language, program.source.encode(), tests, limits)
    return f"{judged['verdict']}" if judged["sandbox"] == sandbox.level else "another level"


@needs_sandbox
@pytest.mark.parametrize("program", EVERY, ids=lambda one: f"{one.language}: {one.name}")
def test_every_program_gets_its_verdict(program: Program) -> None:
    assert SANDBOX is not None
    assert verdict(SANDBOX, program) == program.verdict


@needs_sandbox
@pytest.mark.parametrize("level", [Level.BUBBLE, Level.NAMESPACES], ids=lambda one: one.value)
@pytest.mark.parametrize("name", ["right", "endless loop", "memory hog", "fork bomb", "network"])
def test_weaker_levels_hold_what_they_promise(level: Level, name: str) -> None:
    program = next(one for one in PYTHON if one.name == name)
    try:
        assert verdict(Sandbox(level), program) == program.verdict
    except SandboxUnavailable as error:
        pytest.skip(str(error))


@needs_sandbox
def test_nothing_stays_behind(tmp_path: Path) -> None:
    assert SANDBOX is not None
    tmp_path.chmod(0o755)
    for parent in list(tmp_path.parents)[:3]:  # one more where tests run side by side
        parent.chmod(0o755)
    mark = f"left-behind-{os.getpid()}"
    source = tmp_path / "main.py"
    source.write_text(f"import os, time\nos.fork()\nos.fork()\ntime.sleep(600)  # {mark}\n")
    words = ("/usr/bin/python3", "-I", "-c", source.read_text())
    ran = SANDBOX.run(Task(words, tmp_path, Limits(cpu_seconds=0.2)))
    assert ran.was_stopped
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert mark not in listed.stdout


def test_where_nothing_works_it_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never silently none."""

    def broken(self: Sandbox, task: Task) -> None:
        raise SandboxUnavailable("not here")

    monkeypatch.setattr(Sandbox, "run", broken)
    with pytest.raises(SandboxUnavailable, match="bubblewrap"):
        Sandbox.find()


def test_the_filter_is_whole_jumps_inside_itself_and_ends_with_a_word() -> None:
    for machine in ("x86_64", "aarch64"):
        program = filter_program(machine)
        assert program is not None
        assert len(program) % 8 == 0
        assert program[-8] == 0x06  # the last step returns
    assert filter_program("pdp11") is None
