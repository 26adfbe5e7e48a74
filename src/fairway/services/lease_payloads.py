"""Lets go of payloads of running jobs when they are many: their workers and the store have them.

Should such a job have to be sent out again, its payload is read again; that is rare, and costs one
read. The youngest leases keep theirs: they are the ones whose replies may still be lost.
"""

from __future__ import annotations

from msgspec.structs import replace

from fairway.core.job import NO_PAYLOAD
from fairway.core.reference import MARK
from fairway.runtime.loops import Effort, in_slices
from fairway.services.dispatcher import Dispatcher
from fairway.services.sessions import Lease

REST_SECONDS = 1.0


class LeasePayloads:
    def __init__(self, dispatcher: Dispatcher, bytes_max: int) -> None:
        self._dispatcher = dispatcher
        self._bytes_max = bytes_max

    async def run_once(self, now_us: int) -> float:
        effort, kept_bytes = Effort(), 0
        youngest_first = list(reversed(self._dispatcher.leases.values()))
        async for some in in_slices(youngest_first):
            for lease in some:
                kept_bytes += len(lease.job.payload)
                if kept_bytes > self._bytes_max and _is_with_its_worker(lease):
                    kept_bytes -= len(lease.job.payload)
                    lease.job = replace(lease.job, payload=NO_PAYLOAD)
        return effort.rest_seconds(REST_SECONDS)


def _is_with_its_worker(lease: Lease) -> bool:
    """Of a large payload only the reference is here, and that is looked at while it runs."""
    return lease.delivered and lease.job.payload[:1] != MARK
