"""Writes down leases that were granted lazily and still run: the short pool's `running`.

Most short jobs end before this looks; they cost two row writes, not three.
"""

from __future__ import annotations

import asyncio

from fairway.services.dispatcher import Dispatcher
from fairway.services.recorder import Recorder
from fairway.services.sessions import Lease


class LeaseWriter:
    def __init__(self, dispatcher: Dispatcher, recorder: Recorder, lazy_after_ms: int) -> None:
        self._dispatcher = dispatcher
        self._recorder = recorder
        self._lazy_us = lazy_after_ms * 1000
        self._writing = asyncio.Lock()  # a lease that is written twice looks like another's

    async def run_once(self, now_us: int) -> float:
        async with self._writing:
            await self._write(self._dispatcher.take_stale_leases(now_us - self._lazy_us))
        return self._lazy_us / 2e6

    async def write_all(self) -> None:
        """Before another server goes on: whatever a worker was given, and nothing beside it."""
        async with self._writing:
            self._dispatcher.withdraw_unheard()
            leases = self._dispatcher.leases.values()
            await self._write([lease for lease in leases if not lease.written])

    async def _write(self, leases: list[Lease]) -> None:
        if not leases:
            return
        for lease, is_written in await self._recorder.write_leases(leases):
            lease.written = is_written
            is_in_force = self._dispatcher.leases.get(lease.job.id) is lease
            if is_in_force and not is_written and lease.shard in self._dispatcher.terms:
                self._dispatcher.revoke(lease)  # cancelled under its feet
