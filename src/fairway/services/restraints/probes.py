"""Lets a few jobs out of streams that are held: probes of a dependency, or of a throttled tenant.

The oldest go first. They are read from the store while their streams stay held, so nothing follows
them; what their runs come to is judged like any other run. Tenants take turns: a thousand circuits
of one do not keep the probe of another waiting.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from fairway.core.backlog.holds import EVERY_POOL, EVERY_TYPE, Hold
from fairway.core.backlog.reading import READ_BYTES_MAX
from fairway.core.backlog.streams import Stream, key_of
from fairway.core.backpressure.round_robin import in_turn
from fairway.core.ids import LOWEST_JOB_ID, ShardId, TenantId
from fairway.core.job import QueuedJob
from fairway.runtime.clock import Clock
from fairway.runtime.loops import WorkInParts
from fairway.runtime.telemetry import logger
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.failure.failure_policy import FailurePolicy
from fairway.store import backlog as store
from fairway.store.backlog import StreamRead
from fairway.store.connections.database import Database

log = logger("probes")

CIRCUIT_OPEN = "circuit_open"
RECYCLING = "recycling_throttled"
ROUND_US = 1_000_000  # then what others wrote is read again, and who is due by now takes part


def holds_of(failure_policy: FailurePolicy, tenant: TenantId) -> list[Hold]:
    """What of a tenant's must not start, by what the last minutes showed."""
    circuits = [
        Hold(tenant, type_, EVERY_POOL, CIRCUIT_OPEN)
        for type_, by_name in failure_policy.circuits.of_tenant(tenant)
        if any(circuit.is_open for circuit in by_name.values())
    ]
    throttled = [
        Hold(tenant, EVERY_TYPE, pool, RECYCLING)
        for pool, one in failure_policy.crash_throttle_of(tenant)
        if one.is_throttled
    ]
    return circuits + throttled


class Restraint(Protocol):
    """What lets probes out from time to time: a circuit, or the throttle of a tenant."""

    @property
    def probes_left(self) -> int: ...
    def is_due(self, now_us: int) -> bool: ...
    def tick(self, now_us: int) -> bool: ...
    def unsent(self, now_us: int) -> None: ...


class Probe(NamedTuple):
    """A hold that may let jobs out, and the restraints it stands for."""

    hold: Hold
    restraints: Sequence[Restraint]

    def begin(self, now_us: int) -> int:
        """How many jobs may go out now; 0: what was due is not any more."""
        return max([one.probes_left for one in self.restraints if one.tick(now_us)], default=0)

    def unsent(self, now_us: int) -> None:
        """They could not be let out."""
        for one in self.restraints:
            one.unsent(now_us)


async def due_probes(failure_policy: FailurePolicy, now_us: int) -> dict[TenantId, list[Probe]]:
    """By tenant, holds whose time for probes has come. Their rounds begin when it is their turn."""
    found: dict[TenantId, list[Probe]] = {}
    work = WorkInParts()
    for tenant in failure_policy.restrained():
        if probes := due_probes_of(failure_policy, tenant, now_us):
            found[tenant] = probes
        await work.let_others()
    return found


def due_probes_of(failure_policy: FailurePolicy, tenant: TenantId, now_us: int) -> list[Probe]:
    found: list[Probe] = []
    for type_, by_name in failure_policy.circuits.of_tenant(tenant):
        if due := [one for one in by_name.values() if one.is_due(now_us)]:
            found.append(Probe(Hold(tenant, type_, EVERY_POOL, CIRCUIT_OPEN), due))
    for pool, one in failure_policy.crash_throttle_of(tenant):
        if one.is_due(now_us):
            found.append(Probe(Hold(tenant, EVERY_TYPE, pool, RECYCLING), [one]))
    return found


class Prober:
    def __init__(self, database: Database, dispatcher: Dispatcher, clock: Clock) -> None:
        self._database = database
        self._windows = dispatcher.windows()
        self._clock = clock
        self._last_tenant = TenantId(0)  # whose turn it was

    async def run_round(self, due: Mapping[TenantId, Sequence[Probe]]) -> None:
        """Let probes out, tenants in turn, for about a second.

        What had no turn stays due and has it in the next round. One that fails stops no other.
        """
        work, began_us, errors = WorkInParts(), self._clock.now_us(), list[Exception]()
        for tenant, probe in in_turn(due, self._last_tenant):
            count = probe.begin(self._clock.now_us())
            if count:
                self._last_tenant = tenant
                try:
                    await self.let_out(probe.hold, count)
                except Exception as error:
                    probe.unsent(self._clock.now_us())
                    errors.append(error)
            if self._clock.now_us() - began_us > ROUND_US:
                break
            await work.let_others()
        if errors:  # in one line: there may be very many
            log.warning("probes failed", count=len(errors), first_error=repr(errors[0]))

    async def let_out(self, hold: Hold, count: int) -> None:
        """Let so many of the oldest jobs out that this hold keeps back."""
        streams = self._windows.begin_probe(hold)
        read: dict[Stream, list[QueuedJob]] = {stream: [] for stream in streams}
        try:
            oldest = sorted(await self._read(streams, count), key=lambda found: found[1].id)
            for stream, job in oldest[:count]:
                read[stream].append(job)
        finally:
            out = self._windows.end_probe(read)
        if out:
            log.info("probes", reason=hold.reason, tenant=hold.tenant, jobs=len(out))
            self._windows.refilled(map(key_of, out))

    async def _read(self, streams: list[Stream], count: int) -> list[tuple[Stream, QueuedJob]]:
        by_shard: dict[ShardId, list[Stream]] = defaultdict(list)
        for stream in streams:
            by_shard[stream.shard].append(stream)
        found: list[tuple[Stream, QueuedJob]] = []
        for shard, group in by_shard.items():
            reads = [StreamRead(shard, stream.key, LOWEST_JOB_ID, count) for stream in group]
            async with self._database.hot(at=shard) as connection:
                read = await store.read_streams_by_bytes(
                    connection, reads, READ_BYTES_MAX // len(reads)
                )
            found += [
                (stream, job) for stream, part in zip(group, read, strict=True) for job in part.jobs
            ]
        return found
