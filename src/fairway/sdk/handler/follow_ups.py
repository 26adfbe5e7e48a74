"""What one run wants to start, gathered until the run is over. May be called from any thread.

Nothing goes out from here: whoever runs the job takes what was gathered when it has succeeded, and
drops it otherwise. The ids are known at once, because they follow from the run.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from fairway.core.errors import LimitReached, Refused
from fairway.core.ids import LOWEST_JOB_ID, Epoch
from fairway.core.run.follow_up_ids import (
    FOLLOW_UPS_BYTES_MAX,
    FOLLOW_UPS_MAX,
    follow_up_ids,
    moment_of,
)


class TooManyFollowUps(LimitReached):
    """A run cannot start so many jobs."""

    code = "TOO_MANY_FOLLOW_UPS"


class RunIsOver(Refused):
    """The run has ended, so it can start no more jobs."""

    code = "RUN_IS_OVER"


class Gathered(NamedTuple):
    """One job that the run wants."""

    id: str
    text: bytes  # as it goes over the wire
    submission: Any  # as it was handed in


class RunFollowUps:
    def __init__(self, job_id: str, epoch: int, unix_ms: int) -> None:
        self._job_id = job_id
        self._epoch = Epoch(epoch)
        self.at_ms = moment_of(job_id, unix_ms)
        self._lock = threading.Lock()
        self._gathered: list[Gathered] = []
        self._ids: set[str] = set()
        self._bytes = 0
        self._is_over = False

    def add(self, wanted: Sequence[tuple[bytes, Any]]) -> list[str]:
        """All of these, as texts and as they were handed in, or none; answers their ids."""
        with self._lock:
            if self._is_over:
                raise RunIsOver("The run has ended; only a run that goes on starts jobs.")
            count = len(self._gathered) + len(wanted)
            size = self._bytes + sum(len(text) for text, _ in wanted)
            _check_room(count, size)
            first, self._bytes = len(self._gathered), size
            ids = follow_up_ids(self._job_id, self._epoch, self.at_ms, len(wanted), first)
            self._gathered += [Gathered(id_, *one) for id_, one in zip(ids, wanted, strict=True)]
            self._ids.update(ids)
            return [str(id_) for id_ in ids]

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._ids

    def close(self) -> list[Gathered]:
        """The run is over: what it wanted."""
        with self._lock:
            self._is_over = True
            return self._gathered


#: Of every run that ended and had wanted nothing: what comes later must be told that it is late.
NONE_ANY_MORE = RunFollowUps(LOWEST_JOB_ID, 0, 0)
NONE_ANY_MORE.close()


def _check_room(count: int, size_bytes: int) -> None:
    if count > FOLLOW_UPS_MAX:
        raise TooManyFollowUps(
            f"A run starts at most {FOLLOW_UPS_MAX} jobs, and with these there would be {count}:"
            " let some of them start the others."
        )
    if size_bytes > FOLLOW_UPS_BYTES_MAX:
        raise TooManyFollowUps(
            f"The jobs that a run starts have at most {FOLLOW_UPS_BYTES_MAX} bytes together, and"
            f" with these there would be {size_bytes}: keep large values elsewhere, and pass where."
        )
