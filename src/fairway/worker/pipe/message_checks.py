"""What a runner may say: words about jobs that it was given, in words that are known.

A runner shares its process with user code, which can write to its pipe. So its keeper believes it
in what concerns its own jobs only. Whose they are, and under which lease, the keeper knows itself.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from fairway.core.run.outcome import FailureClass, OutcomeKind
from fairway.core.run.run_log import LINES_MAX, fitted
from fairway.wire.bounds import shown_progress
from fairway.wire.exchange import Report
from fairway.worker.pipe.pipe import Progress, RunLine, RunnerMessage

LATEST_MS = 253_402_300_800_000  # the end of the year 9999
SUCCEEDED = OutcomeKind.SUCCEEDED.value
_KINDS = frozenset(one.value for one in OutcomeKind)
_FAILURES = frozenset(one.value for one in FailureClass)


def checked_message(message: RunnerMessage, jobs: Mapping[str, int]) -> RunnerMessage:
    """Those about these jobs, by epoch; others are left out: a run may end while it is taken away,
    and the same job may have come back under another lease by then.

    ValueError when the end of one of these is no end that there is.
    """
    are_all_ours = True
    for one in message.ended:
        if jobs.get(one.job) != one.epoch:
            are_all_ours = False
        elif one.kind != SUCCEEDED:
            _check_end(one)
    if not are_all_ours:
        message.ended = [one for one in message.ended if jobs.get(one.job) == one.epoch]
    if message.progress or message.checkpoints:
        message.progress = [_shown(one) for one in message.progress if one.job in jobs]
        message.checkpoints = [one for one in message.checkpoints if one.job in jobs]
    if message.lines:
        message.lines = [_kept(one) for one in message.lines if jobs.get(one.job) == one.epoch]
    return message


def _kept(one: RunLine) -> RunLine:
    """As the platform would take it: one that it refused would cost the others."""
    if not (1 <= one.n <= LINES_MAX and 0 <= one.at_ms < LATEST_MS and 0 <= one.level <= 1000):
        raise ValueError("a line has a number, a time and a level that lines have")
    if not 0 <= one.dropped < 1 << 53:
        raise ValueError("a mark counts lines")
    return msgspec.structs.replace(one, text=fitted(one.text))


def _check_end(one: Report) -> None:
    if one.kind not in _KINDS:
        raise ValueError(f"{one.kind[:64]!r} is no end of a run")
    if (one.failure is None) == (one.kind == OutcomeKind.FAILED):
        raise ValueError("a failure has a class, and nothing else has")
    if one.failure is not None and one.failure not in _FAILURES:
        raise ValueError(f"{one.failure[:64]!r} is no class of failures")


def _shown(one: Progress) -> Progress:
    """As the platform shows it: one word that it would refuse must not cost a heartbeat."""
    return Progress(job=one.job, progress=Raw(shown_progress(bytes(one.progress))))
