"""What a run means for its author: a pure function of how it ended, what it wrote and its limits.

A verdict is a result. The job that found it out succeeded, whatever it says, and is never retried.
"""

from __future__ import annotations

import signal
from enum import StrEnum
from typing import NamedTuple


class Verdict(StrEnum):
    ACCEPTED = "accepted"
    WRONG_ANSWER = "wrong answer"
    COMPILE_ERROR = "compile error"
    TIME_LIMIT = "time limit"
    MEMORY_LIMIT = "memory limit"
    RUNTIME_ERROR = "runtime error"


class Limits(NamedTuple):
    """What one run may use. Processor time decides; the wall clock only ends what sleeps."""

    cpu_seconds: float = 2.0
    memory_bytes: int = 256 << 20
    output_bytes: int = 1 << 20
    processes: int = 16

    @property
    def wall_seconds(self) -> float:
        return 3 * self.cpu_seconds + 2


class Ran(NamedTuple):
    """How a program ended, as seen from outside its sandbox."""

    exit_code: int  # below 0: ended by that signal
    cpu_seconds: float
    memory_bytes: int
    stdout: bytes
    stderr: bytes
    was_stopped: bool = False  # by us, when its time ran out
    was_out_of_memory: bool = False  # seen from outside


#: What runtimes say when memory runs out, for where only address space can be limited.
OUT_OF_MEMORY = (
    b"MemoryError",
    b"std::bad_alloc",
    b"java.lang.OutOfMemoryError",
    b"Cannot allocate",
)


def verdict_of(ran: Ran, expected: bytes, limits: Limits) -> tuple[Verdict, str]:
    """The verdict, and a word about it."""
    if ran.was_out_of_memory or (ran.exit_code and _says_out_of_memory(ran, limits)):
        return Verdict.MEMORY_LIMIT, f"more than {limits.memory_bytes >> 20} MB"
    if ran.was_stopped or ran.exit_code == -signal.SIGXCPU or ran.cpu_seconds > limits.cpu_seconds:
        return Verdict.TIME_LIMIT, f"more than {limits.cpu_seconds:g} s"
    if ran.exit_code == -signal.SIGXFSZ or len(ran.stdout) > limits.output_bytes:
        return Verdict.RUNTIME_ERROR, "wrote too much"
    if ran.exit_code:
        return Verdict.RUNTIME_ERROR, _how_it_ended(ran)
    if _words(ran.stdout) != _words(expected):
        return Verdict.WRONG_ANSWER, ""
    return Verdict.ACCEPTED, ""


def _says_out_of_memory(ran: Ran, limits: Limits) -> bool:
    """Who was killed close to its limit met it. A runtime with memory of its own may exceed it."""
    said = any(words in ran.stderr[-4000:] for words in OUT_OF_MEMORY)
    return said or (ran.exit_code < 0 and ran.memory_bytes >= 0.98 * limits.memory_bytes)


def _how_it_ended(ran: Ran) -> str:
    how = f"exit status {ran.exit_code}"
    if ran.exit_code < 0:
        number = -ran.exit_code
        is_named = number in set(signal.Signals)
        how = f"ended by {signal.Signals(number).name if is_named else f'signal {number}'}"
    last = ran.stderr.decode(errors="replace").strip().splitlines()[-1:]
    return f"{how}: {last[0][:300]}" if last else how


def _words(output: bytes) -> list[list[bytes]]:
    """Lines as words: blanks at the ends of lines and empty lines at the end do not count."""
    lines = [line.split() for line in output.split(b"\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines
