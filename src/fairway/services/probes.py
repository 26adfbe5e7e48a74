"""Lets a few jobs out of streams that are held: probes of a dependency, or of a throttled tenant.

The oldest go first. They are read from the store while their streams stay held, so nothing follows
them; what their runs come to is judged like any other run.
"""

from __future__ import annotations

from collections import defaultdict

from fairway.core.holds import Hold
from fairway.core.ids import LOWEST_JOB_ID
from fairway.core.job import QueuedJob
from fairway.core.reading import READ_BYTES_MAX
from fairway.core.streams import Stream, key_of
from fairway.runtime.telemetry import logger
from fairway.services.aftermath import Aftermath
from fairway.services.dispatcher import Dispatcher
from fairway.store import backlog as store
from fairway.store.backlog import StreamRead
from fairway.store.database import Database

log = logger("probes")

CIRCUIT_OPEN = "circuit_open"
RECYCLING = "recycling_throttled"


def all_holds(aftermath: Aftermath) -> list[Hold]:
    """What must not start, by what the last minutes showed."""
    circuits = [
        Hold(key.tenant, key.type, 0, CIRCUIT_OPEN)
        for key, by_name in aftermath.circuits.items()
        if any(circuit.is_open for circuit in by_name.values())
    ]
    throttled = [
        Hold(tenant, 0, pool, RECYCLING)
        for (tenant, pool), one in aftermath.recycling.items()
        if one.is_throttled
    ]
    return circuits + throttled


def due_probes(aftermath: Aftermath, now_us: int) -> list[tuple[Hold, int]]:
    """Holds whose time for probes has come, and how many each may let out."""
    found = []
    for key, by_name in aftermath.circuits.items():
        rounds = [one for one in by_name.values() if one.tick(now_us)]
        if rounds:
            most = max(one.probes_left for one in rounds)
            found.append((Hold(key.tenant, key.type, 0, CIRCUIT_OPEN), most))
    for (tenant, pool), one in aftermath.recycling.items():
        if one.tick(now_us):
            found.append((Hold(tenant, 0, pool, RECYCLING), 1))
    return found


class Prober:
    def __init__(self, database: Database, dispatcher: Dispatcher) -> None:
        self._database = database
        self._dispatcher = dispatcher

    async def let_out(self, hold: Hold, count: int) -> None:
        """Let so many of the oldest jobs out that this hold keeps back."""
        backlog = self._dispatcher.backlog
        streams = backlog.begin_probe(hold)
        read: dict[Stream, list[QueuedJob]] = {stream: [] for stream in streams}
        try:
            oldest = sorted(await self._read(streams, count), key=lambda found: found[1].id)
            for stream, job in oldest[:count]:
                read[stream].append(job)
        finally:
            out = [
                job
                for stream, jobs in read.items()
                for job in backlog.end_probe(stream, jobs, self._dispatcher.leases)
            ]
        if out:
            log.info("probes", reason=hold.reason, tenant=hold.tenant, jobs=len(out))
            self._dispatcher.refilled(map(key_of, out))

    async def _read(self, streams: list[Stream], count: int) -> list[tuple[Stream, QueuedJob]]:
        by_shard: dict[int, list[Stream]] = defaultdict(list)
        for stream in streams:
            by_shard[stream.shard].append(stream)
        found: list[tuple[Stream, QueuedJob]] = []
        for shard, group in by_shard.items():
            reads = [StreamRead(stream.key, LOWEST_JOB_ID, count) for stream in group]
            async with self._database.hot() as connection:
                read = await store.read_streams_by_bytes(
                    connection, shard, reads, READ_BYTES_MAX // len(reads)
                )
            found += [
                (stream, job) for stream, part in zip(group, read, strict=True) for job in part.jobs
            ]
        return found
