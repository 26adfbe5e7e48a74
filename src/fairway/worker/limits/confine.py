"""What a runner does to itself before it holds user code: limits, orphans, who dies first.

Kernel limits hold each process by itself; the keeper watches the sum. They are set in the runner,
because only there they bind nobody else.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import resource
from pathlib import Path

from fairway.core.run.process_limits import RunLimits

_PR_SET_CHILD_SUBREAPER = 36
OOM_SCORE = 500  # when the machine runs out of memory, runners go before their keeper


def adopt_orphans() -> None:
    """Descendants whose parent ends become our children, instead of nobody's."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_before_the_keeper() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE))


def name_process(name: str) -> None:
    """For who looks at a list of processes; at most 15 letters are kept."""
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(name)


def apply(limits: RunLimits) -> None:
    """For the rest of this process's life and for all that it starts; processor time is apart."""
    _lower(resource.RLIMIT_CORE, 0)  # a job killed for its memory must not fill the disk with it
    if limits.memory_bytes is not None:
        _lower(resource.RLIMIT_DATA, limits.memory_bytes)
    if limits.file_bytes is not None:
        _lower(resource.RLIMIT_FSIZE, limits.file_bytes)
    if limits.open_files is not None:
        _lower(resource.RLIMIT_NOFILE, limits.open_files)
    if limits.processes is not None and os.getuid() != 0:
        # Counts all that this user runs, so it can only stop the worst: the watch does the rest.
        _lower(resource.RLIMIT_NPROC, _tasks_of_user() + limits.processes)


def allow_processor_time(limits: RunLimits) -> None:
    """So much from now on, for the run that begins; past it the kernel sends SIGXCPU."""
    if limits.cpu_ms is None:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = math.ceil(used.ru_utime + used.ru_stime + limits.cpu_ms / 1000)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (_at_most(seconds, hard), hard))


def _lower(which: int, limit: int) -> None:
    _, hard = resource.getrlimit(which)
    limit = _at_most(limit, hard)
    resource.setrlimit(which, (limit, limit))


def _at_most(limit: int, hard: int) -> int:
    return limit if hard == resource.RLIM_INFINITY else min(limit, hard)


def _tasks_of_user() -> int:
    user, count = os.getuid(), 0
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == user:
                count += sum(1 for _ in (entry / "task").iterdir())
    return count
