"""Finds jobs in the shared runner that are past their time limit and have not said so.

A runner ends its jobs itself when their time is up. One that cannot, because a job will not let go,
is found here. Nothing is noted when a job starts: a look a second at what runs is all it costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fairway.core.ids import Epoch
from fairway.wire.exchange import Lease
from fairway.worker.pipe.pipe import Declared

GRACE_SECONDS = 5.0  # what a run gets to report its own end


class Seen(NamedTuple):
    epoch: Epoch
    since: float


class OverdueJobs:
    def __init__(self) -> None:
        self._seen: dict[str, Seen] = {}  # first look that found the job running

    def look(
        self, running: Mapping[str, Lease], declared: Mapping[str, Declared], now: float
    ) -> list[str]:
        """The jobs that are too long here, each once; so a late answer can be waited for."""
        before, self._seen = self._seen, {}
        found = []
        for job, lease in running.items():
            limit_ms = limit_of(lease, declared.get(lease.type))
            if limit_ms is None:
                continue
            seen = before.get(job)
            if seen is None or seen.epoch != lease.epoch:
                seen = Seen(lease.epoch, now)
            if now - seen.since >= limit_ms / 1000 + GRACE_SECONDS:
                found.append(job)
                seen = Seen(lease.epoch, now)
            self._seen[job] = seen
        return found


def limit_of(lease: Lease, declared: Declared | None) -> int | None:
    if lease.timeout_ms is not None:
        return lease.timeout_ms
    return None if declared is None else declared.timeout_ms
