"""Runs a stranger's program where it can do no harm, and says how it ended.

Levels, the strongest that works on this host is in force and named in every result:

    bubblewrap + seccomp + cgroup   own root, no network, refused calls, the kernel counts memory
    namespaces + seccomp + cgroup   the same, its root built by the judge's own program
    bubblewrap + seccomp            memory limited as address space and by looking at it
    namespaces + seccomp            the same, its root built by the judge's own program

There is no level "none": where not even the last works, `Sandbox.find` raises SandboxUnavailable.
Contest grade. For tenants who mean harm, put the worker into a virtual machine of its own.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from examples.judge import cgroups, places, walls
from examples.judge.cgroups import Cage
from examples.judge.places import Place
from examples.judge.trouble import SandboxUnavailable
from examples.judge.verdicts import Limits, Ran

ERRORS_BYTES_MAX = 64 << 10
GRACE_SECONDS = 5.0  # for a warden to end a run that is over; then it is ended from outside
TRIAL = Limits(cpu_seconds=5.0)
LOOK_AROUND = (
    "/usr/bin/python3", "-I", "-S", "-c",
    "import os, json; print(json.dumps([os.getpid(), os.getuid(), os.listdir('/tmp'),"
    " os.listdir('/box'), sorted(os.listdir('/'))]))",
)  # fmt: skip
ROOT_HAS = {*walls.LINKS, "box", "dev", "etc", "proc", "tmp", "usr"}


class Task(NamedTuple):
    """A program to run in a place. `own_memory`: its runtime keeps to the limit by itself."""

    words: tuple[str, ...]
    place: Place
    limits: Limits
    stdin: bytes = b""
    may_write: bool = False  # into its folder: compilers do
    own_memory: bool = False
    gently: bool = False  # compilers stand back behind programs that run


class Streams(NamedTuple):
    """Files without a name: they cannot stay behind, whatever happens to us."""

    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]


class Sandbox:
    def __init__(self, level: walls.Level) -> None:
        self._level = level

    @property
    def level(self) -> str:
        return self._level.value

    @classmethod
    def find(cls, wanted: str = "") -> Sandbox:
        """The strongest level whose walls stand here; or this one and no other."""
        places.sweep()
        cgroups.sweep()
        reasons = []
        for level in walls.levels(wanted):
            sandbox = cls(level)
            try:
                sandbox.prove()
            except SandboxUnavailable as error:
                reasons.append(f"{level.value}: {error}")
            else:
                return sandbox
        raise SandboxUnavailable("no sandbox level works here: " + "; ".join(reasons))

    def prove(self) -> None:
        """A harmless program tells what it sees from inside. Raises where a wall is missing."""
        with places.opened() as place:
            (place.folder / "here").touch()
            ran = self.run(Task(LOOK_AROUND, place, TRIAL))
        if ran.exit_code != 0:
            raise SandboxUnavailable(_last_words(ran.stderr) or f"it ended with {ran.exit_code}")
        pid, uid, scratch, box, root = json.loads(ran.stdout)
        is_apart = pid != 1 and uid == int(walls.NOBODY) and not scratch and box == ["here"]
        if not is_apart or set(root) - ROOT_HAS:
            raise SandboxUnavailable(f"its walls do not stand: {ran.stdout.decode().strip()}")

    def run(self, task: Task) -> Ran:
        cage = self._cage(task)
        try:
            with _streams(task) as streams, walls.Built(self._level, task, cage) as built:
                process = _start(built, streams)
                is_late = _wait(process, task.limits.wall_seconds + GRACE_SECONDS)
                return _ran(task, streams, built.told(), is_late, cage)
        finally:
            if cage is not None:
                cage.empty()

    def _cage(self, task: Task) -> Cage | None:
        if not self._level.has_cage:
            return None
        cage = Cage.make(walls.memory_limit(task), task.limits.processes)
        if cage is None:
            raise SandboxUnavailable("control groups cannot be written here")
        return cage


@contextmanager
def _streams(task: Task) -> Iterator[Streams]:
    """The account's own, so that a program may open /dev/stdin like any other file."""
    with (
        tempfile.TemporaryFile() as stdin,
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
    ):
        stdin.write(task.stdin)
        stdin.seek(0)
        if task.place.uid is not None:
            for file in (stdin, stdout, stderr):
                os.fchown(file.fileno(), task.place.uid, task.place.uid)
        yield Streams(stdin, stdout, stderr)


def _start(built: walls.Built, streams: Streams) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            built.words, stdin=streams.stdin, stdout=streams.stdout, stderr=streams.stderr,
            cwd="/", env={"PATH": "/usr/bin:/bin"}, pass_fds=built.descriptors,
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise SandboxUnavailable(str(error)) from error


def _wait(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Until it ends, or until it must: the answer says whether it had to."""
    watch = os.pidfd_open(process.pid)
    try:
        if _has_ended(watch, seconds):
            return False
        for pid in _children(process.pid):  # the warden: its parent waits until all are gone
            _kill(pid)
        _has_ended(watch, GRACE_SECONDS)
        return True
    finally:
        os.close(watch)
        if process.poll() is None:
            _kill(process.pid)  # and with it, by its own wish, the warden
        process.wait()


def _has_ended(watch: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(watch, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _ran(task: Task, streams: Streams, told: list[str], is_late: bool, cage: Cage | None) -> Ran:
    errors = _read(streams.stderr, ERRORS_BYTES_MAX)
    if told[:1] == ["trouble"] or (len(told) != 4 and not is_late):
        raise SandboxUnavailable(" ".join(told[1:]) or _last_words(errors) or "it ended unheard")
    code, cpu_seconds, peak_bytes, over = told if len(told) == 4 else ("-9", "0", "0", "time")
    return Ran(
        exit_code=int(code),
        cpu_seconds=cage.cpu_seconds if cage else float(cpu_seconds),
        # Without a cage it is the largest process, and what it was before it was the program.
        memory_bytes=cage.peak_bytes if cage else int(peak_bytes),
        stdout=_read(streams.stdout, task.limits.output_bytes + 1),
        stderr=errors,
        was_stopped=over == "time",
        was_out_of_memory=over == "memory" or (cage is not None and cage.was_out_of_memory),
    )


def _read(file: IO[bytes], bytes_max: int) -> bytes:
    file.seek(0)
    return file.read(bytes_max)


def _last_words(errors: bytes) -> str:
    return errors.decode(errors="replace").strip()[-300:]
