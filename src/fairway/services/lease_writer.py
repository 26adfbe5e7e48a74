"""Writes down leases that were granted lazily and still run: the short pool's `running`.

Most short jobs end before this looks; they cost two row writes, not three.
"""

from __future__ import annotations

from fairway.services.dispatcher import Dispatcher
from fairway.services.recorder import Recorder


class LeaseWriter:
    def __init__(self, dispatcher: Dispatcher, recorder: Recorder, lazy_after_ms: int) -> None:
        self._dispatcher = dispatcher
        self._recorder = recorder
        self._lazy_us = lazy_after_ms * 1000

    async def run_once(self, now_us: int) -> float:
        stale = self._dispatcher.take_stale_leases(now_us - self._lazy_us)
        if stale:
            for lease, is_written in await self._recorder.write_leases(stale):
                lease.written = is_written
                is_in_force = self._dispatcher.leases.get(lease.job.id) is lease
                if is_in_force and not is_written and lease.shard in self._dispatcher.terms:
                    self._dispatcher.revoke(lease)  # cancelled under its feet
        return self._lazy_us / 2e6
