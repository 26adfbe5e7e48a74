"""Jobs that may have killed their runner: each runs in a process of its own, a few at a time.

A job is suspect when it was lost with a runner that had few others, or often enough whatever it was
lost with. Those that wait for their turn have not begun, and their time limit counts elsewhere: one
that has waited too long is handed back, and stays suspect here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

from fairway.core.run.outcome import Outcome
from fairway.runtime.loops import pause
from fairway.runtime.telemetry import logger
from fairway.wire.exchange import Lease
from fairway.worker.exchange import synthetic_outcomes
from fairway.worker.pipe.pipe import Declared
from fairway.worker.runners.isolated import IsolatedRuns
from fairway.worker.runners.start_failures import HAND_BACK_SECONDS

log = logger("fleet")

SHARED_DELIVERIES = 2  # a job that lost its runner so often runs apart: it may be the one to blame
SUSPECTS_MAX = 4  # such jobs at a time
LOOK_SECONDS = 0.05


class Suspects:
    def __init__(self, isolated: IsolatedRuns, on_end: Callable[[Lease, Outcome], None]) -> None:
        self._isolated = isolated
        self._on_end = on_end
        self._waiting: dict[str, Lease] = {}
        self._blamed: set[str] = set()  # lost with a runner that had few others
        self._turns = asyncio.Semaphore(SUSPECTS_MAX)

    @property
    def has_blamed(self) -> bool:
        return bool(self._blamed)

    def __iter__(self) -> Iterator[str]:
        """The jobs that wait."""
        return iter(self._waiting)

    def __contains__(self, lease: Lease) -> bool:
        """Whether it must run apart."""
        return lease.delivery > SHARED_DELIVERIES or lease.job in self._blamed

    def lost(self, leases: Sequence[Lease]) -> None:
        """A shared runner died with these."""
        if len(leases) <= SUSPECTS_MAX:
            self._blamed = {lease.job for lease in leases}  # of the last death: a few at a time

    def run(self, lease: Lease, declared: Declared) -> Coroutine[Any, Any, None]:
        """It waits here from now on; the coroutine lasts until its run is over."""
        self._waiting[lease.job] = lease
        return self._run(lease, declared)

    def take_out(self, job: str) -> Lease | None:
        """It waits no longer, and nobody blames it for the past; None for one that did not wait."""
        lease = self._waiting.pop(job, None)
        if lease is not None:
            self._blamed.discard(job)
        return lease

    async def _run(self, lease: Lease, declared: Declared) -> None:
        try:
            async with asyncio.timeout(HAND_BACK_SECONDS):
                await self._turns.acquire()
        except TimeoutError:
            self._hand_back(lease)
            return
        try:
            if self._waiting.get(lease.job) is lease:
                self.take_out(lease.job)
                await self._isolated.run(lease, declared)
                while lease.job in self._isolated:
                    await pause(LOOK_SECONDS)
        finally:
            self._turns.release()

    def _hand_back(self, lease: Lease) -> None:
        if self._waiting.get(lease.job) is lease:
            del self._waiting[lease.job]  # and it is blamed as before, should it come back
            log.info("suspect handed back: others run for too long", job=lease.job)
            self._on_end(lease, synthetic_outcomes.returned())
