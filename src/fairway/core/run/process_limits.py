"""What a job in a process of its own may use, and when its run must be ended from outside.

Pure: facts about a run go in, a verdict with its reason comes out, or none. Measuring and killing
are the worker's. A limit that is None is not there.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

from fairway.core.run.outcome import FailureClass, OutcomeKind

KILL_GRACE_MS = 1000  # a run reports its own time-out first; then its process is killed
RUNAWAY_CPU_MS = 3_600_000  # for runs without a time limit; see `runaway_cpu_ms`
CANCEL_GRACE_MS = 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """For one run, its process and all that it starts; memory includes the interpreter's own."""

    memory_bytes: int | None = None
    cpu_ms: int | None = None
    file_bytes: int | None = None  # of each file it writes
    open_files: int | None = None  # in each process
    processes: int | None = None  # threads count, too

    def within(self, ceiling: RunLimits) -> RunLimits:
        """The narrower of both, limit by limit."""
        names = [field.name for field in fields(self)]
        pairs = {name: (getattr(self, name), getattr(ceiling, name)) for name in names}
        return RunLimits(**{name: _narrower(*pair) for name, pair in pairs.items()})


UNLIMITED = RunLimits()


class Usage(NamedTuple):
    """What a run's process and all that it started use, together."""

    cpu_ms: int = 0
    memory_bytes: int = 0
    processes: int = 0


class Watched(NamedTuple):
    """What is known of a run that is under way. Times are since something happened."""

    ran_ms: int
    usage: Usage
    limits: RunLimits = UNLIMITED
    timeout_ms: int | None = None
    cancelled_ms: int | None = None  # since it was asked to stop
    cancel_grace_ms: int = CANCEL_GRACE_MS
    idle_cpu_ms: int = 0  # processor time since its last progress or checkpoint
    runaway_cpu_ms: int | None = None


class Verdict(NamedTuple):
    """Why a run is ended from outside, and what that means for the job."""

    kind: OutcomeKind
    failure: FailureClass | None
    type: str
    message: str


def verdict(run: Watched) -> Verdict | None:
    """None lets the run go on. What somebody asked for comes before what it did wrong."""
    if run.cancelled_ms is not None and run.cancelled_ms >= run.cancel_grace_ms:
        return Verdict(
            OutcomeKind.CANCELLED,
            None,
            "KilledAfterCancel",
            f"It did not stop within {_seconds(run.cancel_grace_ms)} of being asked to.",
        )
    if run.timeout_ms is not None and run.ran_ms >= run.timeout_ms + KILL_GRACE_MS:
        return timed_out(run.timeout_ms)
    return _over_a_limit(run) or _runaway(run)


def timed_out(timeout_ms: int) -> Verdict:
    message = f"The time limit of {_seconds(timeout_ms)} passed; its process was killed."
    return Verdict(OutcomeKind.FAILED, FailureClass.TIMEOUT, "TimeLimitPassed", message)


def over_limit(what: str) -> Verdict:
    """It came up against a limit of memory, processor, disk or number."""
    return Verdict(OutcomeKind.FAILED, FailureClass.RESOURCE, "LimitExceeded", what)


def runaway_after_ms(declared_ms: int | None, timeout_ms: int | None) -> int | None:
    """What the job type says (0: never); else an hour, unless a time limit bounds it anyway."""
    if declared_ms is not None:
        return declared_ms or None
    return RUNAWAY_CPU_MS if timeout_ms is None else None


def _over_a_limit(run: Watched) -> Verdict | None:
    limits, usage = run.limits, run.usage
    if limits.memory_bytes is not None and usage.memory_bytes > limits.memory_bytes:
        used = f"{usage.memory_bytes >> 20} MB of memory"
        return over_limit(f"It used {used}; its limit is {limits.memory_bytes >> 20} MB.")
    if limits.cpu_ms is not None and usage.cpu_ms > limits.cpu_ms:
        used = f"{_seconds(usage.cpu_ms)} of processor time"
        return over_limit(f"It used {used}; its limit is {_seconds(limits.cpu_ms)}.")
    if limits.processes is not None and usage.processes > limits.processes:
        used = f"{usage.processes} processes and threads"
        return over_limit(f"It had {used}; its limit is {limits.processes}.")
    return None


def _runaway(run: Watched) -> Verdict | None:
    if run.runaway_cpu_ms is None or run.idle_cpu_ms < run.runaway_cpu_ms:
        return None
    message = (
        f"It spent {_seconds(run.idle_cpu_ms)} of processor time without progress or checkpoint;"
        " report progress, or declare runaway_after."
    )
    return Verdict(OutcomeKind.FAILED, FailureClass.RUNAWAY, "Runaway", message)


def _narrower(one: int | None, other: int | None) -> int | None:
    there = [limit for limit in (one, other) if limit is not None]
    return min(there) if there else None


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:g} s"
