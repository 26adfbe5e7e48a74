"""Runs a stranger's program where it can do no harm, and says how it ended.

Levels, the strongest that works on this host is in force and named in every result:

    bubblewrap + seccomp + cgroup   own root, no network, refused calls, the kernel counts memory
    bubblewrap + seccomp            the same, memory limited as address space
    namespaces                      own processes, no network, no privileges; sees the host's files

There is no level "none": where not even the last works, `Sandbox.find` raises SandboxUnavailable.
Contest grade. For tenants who mean harm, put the worker into a virtual machine of its own.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from examples.judge import walls
from examples.judge.cgroups import Cage
from examples.judge.verdicts import Limits, Ran

ERRORS_BYTES_MAX = 64 << 10
RUNTIME_BYTES = 160 << 20  # of a runtime that keeps its programs' memory apart from its own
TRIAL = Limits(cpu_seconds=5.0)


class SandboxUnavailable(Exception):
    """The host cannot hold a stranger's program, or could not this time. Worth another try."""


class Task(NamedTuple):
    """A program to run in a folder. `own_memory`: its runtime keeps to the limit by itself."""

    words: Sequence[str]
    folder: Path
    limits: Limits
    stdin: bytes = b""
    may_write: bool = False  # into its folder: compilers do
    own_memory: bool = False
    gently: bool = False  # compilers stand back behind programs that run


class Sandbox:
    def __init__(self, level: walls.Level) -> None:
        self._level = level

    @property
    def level(self) -> str:
        return self._level.value

    @classmethod
    def find(cls) -> Sandbox:
        """The strongest level that runs a program here, tried with a harmless one."""
        reasons = []
        for level in walls.Level:
            sandbox = cls(level)
            try:
                with tempfile.TemporaryDirectory(prefix="judge-") as folder:
                    os.chmod(folder, 0o755)
                    ran = sandbox.run(Task(("/usr/bin/true",), Path(folder), TRIAL))
            except SandboxUnavailable as error:
                reasons.append(f"{level.value}: {error}")
                continue
            if ran.exit_code == 0:
                return sandbox
            reasons.append(f"{level.value}: {ran.stderr.decode(errors='replace').strip()[-200:]}")
        raise SandboxUnavailable("no sandbox level works here: " + "; ".join(reasons))

    def run(self, task: Task) -> Ran:
        limits = task.limits
        cage = self._cage(limits, RUNTIME_BYTES if task.own_memory else 0)
        with tempfile.TemporaryDirectory(prefix="judge-io-") as private:
            try:
                return self._run(task, cage, Path(private))
            finally:
                if cage is not None:
                    cage.empty()

    def _cage(self, limits: Limits, more_bytes: int) -> Cage | None:
        if self._level is not walls.Level.CAGED:
            return None
        cage = Cage.make(limits.memory_bytes + more_bytes, limits.processes + walls.OWN_PROCESSES)
        if cage is None:
            raise SandboxUnavailable("control groups cannot be written here")
        return cage

    def _run(self, task: Task, cage: Cage | None, private: Path) -> Ran:
        (private / "in").write_bytes(task.stdin)
        status_out, status_in = os.pipe()
        with (
            walls.Built(self._level, task, cage, status_in) as built,
            (private / "in").open("rb") as stdin,
            (private / "out").open("wb") as stdout,
            (private / "err").open("wb") as stderr,
        ):
            try:
                process = subprocess.Popen(
                    built.words, stdin=stdin, stdout=stdout, stderr=stderr, cwd="/",
                    env={"PATH": "/usr/bin:/bin"}, pass_fds=built.descriptors,
                    start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                os.close(status_out)
                raise SandboxUnavailable(str(error)) from error
            finally:
                os.close(status_in)
            code, usage, was_stopped = _wait(process, task.limits.wall_seconds)
        with os.fdopen(status_out, "rb") as status:
            said = status.read()
        errors = _read(private / "err", ERRORS_BYTES_MAX)
        out_of_memory = cage is not None and cage.was_out_of_memory
        is_explained = b'"exit-code"' in said or was_stopped or out_of_memory
        if self._level.has_status and not is_explained:
            raise SandboxUnavailable(errors.decode(errors="replace").strip()[-300:])
        return Ran(
            exit_code=_exit_code(said, code),
            cpu_seconds=cage.cpu_seconds if cage else usage.ru_utime + usage.ru_stime,
            # Without a cage it is not known: what wait4 says counts the judge's own pages as well.
            memory_bytes=cage.peak_bytes if cage else 0,
            stdout=_read(private / "out", task.limits.output_bytes + 1),
            stderr=errors,
            was_stopped=was_stopped,
            was_out_of_memory=out_of_memory,
        )


def _wait(
    process: subprocess.Popen[bytes], seconds: float
) -> tuple[int, resource.struct_rusage, bool]:
    """Until it ends, or until it must."""
    stopped = threading.Event()

    def stop() -> None:
        stopped.set()
        try:
            os.killpg(process.pid, signal.SIGKILL)  # its namespace dies with the first process
        except ProcessLookupError:
            return

    timer = threading.Timer(seconds, stop)
    timer.start()
    try:
        _, status, usage = os.wait4(process.pid, 0)
    finally:
        timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage, stopped.is_set()


def _exit_code(said: bytes, code: int) -> int:
    for line in said.splitlines():
        document = json.loads(line)
        if "exit-code" in document:
            return int(document["exit-code"])
    return code if code >= 0 else 128 - code


def _read(path: Path, bytes_max: int) -> bytes:
    with path.open("rb") as file:
        return file.read(bytes_max)
