"""The first process inside a sandbox: it starts the program, buries everybody, tells how it ended.

It runs apart from the judge, `python3 -I -S -c <this text and a call of main>`, and imports little,
for its start is part of every run. Being process 1, no signal from inside does anything to it;
nobody inside may look into its memory or its open files; and every orphan comes to it, so that no
processor time stays uncounted and nobody outlives the program.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import time

TYPE_CHECKING = False  # the module `typing` takes longer to load than a short program runs
if TYPE_CHECKING:
    from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
SET_DUMPABLE, SET_NAME, SET_SECCOMP, NO_NEW_PRIVILEGES = 4, 15, 22, 38
FILTER = 2
ANY_CHILD = 0x40000000  # __WALL: also those that were made without a signal for their end
LOOK_SECONDS = 0.05
SLACK_SECONDS = 0.05  # so that the kernel's own limit, which has a name, comes first
TICKS = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def main(plan: dict[str, Any], words: list[str]) -> None:
    LIBC.prctl(SET_NAME, b"judge-warden")
    _prctl(SET_DUMPABLE, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # what has a handler could be sent from inside
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    for descriptor in (plan["status"], *plan["doors"]):
        os.set_inheritable(descriptor, False)
    heard, said = os.pipe()
    program = os.fork()
    if program == 0:
        _become(plan, words, said)
    os.close(said)
    code, over = _watch(program, plan)
    _clear()
    os.write(plan["status"], _report(plan, code, over, os.read(heard, 1000)))
    os._exit(0)


def _prctl(option: int, first: int, second: int = 0) -> None:
    numbers = [ctypes.c_ulong(one) for one in (first, second, 0, 0)]
    if LIBC.prctl(option, *numbers) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")


# -- the program ---------------------------------------------------------------------------------


def _become(plan: dict[str, Any], words: list[str], said: int) -> None:
    """What goes wrong before the program is there is the host's fault, and said so."""
    try:
        os.setsid()
        for door in plan["doors"]:
            os.write(door, b"0")
        for name, (soft, hard) in plan["limits"].items():
            _limit(getattr(resource, "RLIMIT_" + name), soft, hard)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        _refuse_calls(bytes.fromhex(plan["filter"]))
    except BaseException as error:
        os.write(said, repr(error).encode())
        os._exit(125)
    try:
        os.execv(words[0], words)
    except OSError as error:
        os.write(2, f"{words[0]}: {error.strerror}\n".encode())
    os._exit(127)


def _limit(which: int, soft: int, hard: int) -> None:
    _, most = resource.getrlimit(which)
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    resource.setrlimit(which, (soft, hard))


def _refuse_calls(program: bytes) -> None:
    steps = Filter(len(program) // 8, program)
    _prctl(NO_NEW_PRIVILEGES, 1)
    _prctl(SET_SECCOMP, FILTER, ctypes.addressof(steps))


# -- the watch -----------------------------------------------------------------------------------


def _watch(program: int, plan: dict[str, Any]) -> tuple[int, str]:
    """How the program itself ended, and of what there was too much."""
    began, over = time.monotonic(), ""
    while True:
        signal.sigtimedwait({signal.SIGCHLD}, LOOK_SECONDS)
        status = _bury(program)
        if status is not None:
            return os.waitstatus_to_exitcode(status), over
        over = over or _too_much(plan, time.monotonic() - began)
        if over:
            _kill_everybody()


def _bury(program: int) -> int | None:
    """Everybody who can be; the program's status if it was among them."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG | ANY_CHILD)
        if pid == program:
            return status
        if pid == 0:
            return None


def _kill_everybody() -> None:
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        return


def _clear() -> None:
    """Until nobody is left."""
    while True:
        _kill_everybody()
        try:
            os.waitpid(-1, ANY_CHILD)
        except ChildProcessError:
            return


def _too_much(plan: dict[str, Any], seconds: float) -> str:
    cpu_seconds, memory_bytes, pids = _used()
    if seconds > plan["wall_seconds"] or cpu_seconds > plan["cpu_seconds"] + SLACK_SECONDS:
        return "time"
    limit = plan["memory_bytes"]
    if limit and memory_bytes > limit and sum(map(_proportional_bytes, pids)) > limit:
        return "memory"
    return ""


def _used() -> tuple[float, int, list[str]]:
    """By those who live and those who are buried. Shared pages count for each who shares them."""
    buried = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_seconds, memory_bytes = buried.ru_utime + buried.ru_stime, 0
    pids = [one for one in os.listdir("/proc") if one.isdigit() and one != "1"]
    for pid in pids:
        fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        if fields:
            cpu_seconds += sum(map(int, fields[11:15])) / TICKS
            memory_bytes += int(fields[21]) * PAGE_BYTES
    return cpu_seconds, memory_bytes, pids


def _proportional_bytes(pid: str) -> int:
    """With shared pages shared out; of one who hides that, all that it has."""
    for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    fields = _read(f"/proc/{pid}/statm").split()
    return int(fields[1]) * PAGE_BYTES if fields else 0


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""  # it ended meanwhile


def _report(plan: dict[str, Any], code: int, over: str, trouble: bytes) -> bytes:
    if trouble:
        return b"trouble " + trouble
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak_bytes = used.ru_maxrss * 1024  # of the largest process
    if plan["memory_bytes"] and peak_bytes > plan["memory_bytes"]:
        over = over or "memory"
    return f"{code} {used.ru_utime + used.ru_stime:.6f} {peak_bytes} {over or '-'}".encode()
