"""Keeps what restrains failing jobs in step: with the store, with other owners, with the streams.

What the aftermath of runs found out (a circuit opened, a type mostly fails, a tenant costs too many
workers) is written down here, told to the tenant as an event, and turned into holds on streams.
What other owners wrote, or a person lifted, is read back. Rounds of probes start here.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairway.core.failure.circuits import Circuit, CircuitRecord
from fairway.core.failure.quarantine import Quarantine
from fairway.core.ids import TenantId, TypeId
from fairway.runtime.clock import Clock
from fairway.runtime.loops import WorkInParts, in_parts
from fairway.runtime.telemetry import logger
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.failure.failure_policy import FailurePolicy, RestraintChange, TypeKey
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.restraints.holds import HoldRegistry
from fairway.services.restraints.probes import Prober, due_probes, holds_of
from fairway.services.restraints.restraint_events import event_of
from fairway.store import restraints as store
from fairway.store.connections.database import DISCONNECTED, Connection, Database
from fairway.store.events.log import add_notices
from fairway.store.restraints import CircuitKey

log = logger("restraints")

SOURCE = "restraints"
REST_SECONDS = 1.0


def hold_streams(
    failure_policy: FailurePolicy, holds: HoldRegistry, tenants: Iterable[TenantId]
) -> None:
    """Something of these began or ended: streams are held, or not, from this moment."""
    found = {tenant: tuple(holds_of(failure_policy, tenant)) for tenant in tenants}
    holds.replace_for(SOURCE, found)


class RestraintLoop:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        failure_policy: FailurePolicy,
        directory: Directory,
        holds: HoldRegistry,
        *,
        clock: Clock,
    ) -> None:
        self._database = database
        self._failure_policy = failure_policy
        self._directory = directory
        self._holds = holds
        self._clock = clock
        self._prober = Prober(database, dispatcher, clock)
        self._shared_circuits: set[CircuitKey] = set()  # as the store had them when last asked
        self._shared_quarantines: set[tuple[TenantId, TypeId]] = set()

    async def run_once(self, now_us: int) -> float:
        await self._write_news()
        await self._read_shared()
        self._end_throttles()
        await self._tell_all()
        await in_parts(self._failure_policy.forgetting(self._clock.now_us()))
        await self._prober.run_round(await due_probes(self._failure_policy, self._clock.now_us()))
        return REST_SECONDS

    async def _tell_all(self) -> None:
        """A tenant at a time: what was read of others, and what ended by itself."""
        work = WorkInParts()
        for tenant in self._failure_policy.restrained().union(self._holds.tenants_of(SOURCE)):
            hold_streams(self._failure_policy, self._holds, [tenant])
            await work.let_others()

    # -- with the store ----------------------------------------------------------------------

    async def _write_news(self) -> None:
        news = self._failure_policy.take_news()
        if not news:
            return
        events, work = [], WorkInParts()
        try:
            for change in news:
                if change.is_news:
                    events.append(await event_of(change, self._directory))
                await work.let_others()
            async with self._database.background() as connection, connection.transaction():
                for change in news:
                    await self._write(connection, change)
                if events:
                    await add_notices(connection, events)
        except DISCONNECTED:
            self._failure_policy.put_news_back(news)
            raise
        for event in events:
            log.warning(event.kind, tenant=event.tenant, subject=event.subject, why=event.detail)
            await work.let_others()

    async def _write(self, connection: Connection, change: RestraintChange) -> None:
        tenant_type = (change.tenant, TypeId(change.subject))
        if change.kind == "circuit":
            key = CircuitKey(*tenant_type, change.dependency)
            circuit = self._failure_policy.circuits.of_type(key.tenant, key.type).get(
                key.dependency
            )
            if circuit is not None and circuit.is_open:
                record = circuit.record(self._clock.now_us())
                await store.open_circuit(connection, key, record)
                self._shared_circuits.add(key)
            else:
                await store.close_circuit(connection, key)
                self._shared_circuits.discard(key)
        elif change.kind == "quarantine":
            if change.is_on:
                await store.impose_quarantine(connection, *tenant_type)
                self._shared_quarantines.add(tenant_type)
            else:
                await store.lift_quarantine(connection, *tenant_type)
                self._shared_quarantines.discard(tenant_type)

    async def _read_shared(self) -> None:
        """What others wrote since. Gone through in parts: what changes here meanwhile is news."""
        async with self._database.background() as connection:
            there = await store.any_restraints(connection)
            circuits = await store.all_circuits(connection) if there.circuits else {}
            quarantines = await store.all_quarantines(connection) if there.quarantines else {}
        now_us, work = self._clock.now_us(), WorkInParts()
        for key, found in circuits.items():
            self._open(key, found.record, now_us)
            await work.let_others()
        for key in self._shared_circuits - circuits.keys():
            self._close(key)
            await work.let_others()
        for tenant_type in quarantines:
            self._impose(TypeKey(*tenant_type))
            await work.let_others()
        for tenant_type in self._shared_quarantines - quarantines.keys():
            self._lift(TypeKey(*tenant_type))
            await work.let_others()
        self._shared_circuits, self._shared_quarantines = set(circuits), set(quarantines)

    def _open(self, key: CircuitKey, record: CircuitRecord, now_us: int) -> None:
        failure_policy = self._failure_policy
        circuit = failure_policy.circuits.of_type(key.tenant, key.type).get(key.dependency)
        if circuit is None:
            if not failure_policy.circuits.has_room(key.tenant):
                return  # it has as many as it may; whoever opened it looks after it
            circuit = Circuit(failure_policy.circuit_settings)
            failure_policy.circuits.put(*key, circuit)
        failure_policy.watched.add(key.tenant)
        if not circuit.is_open and not self._is_news("circuit", *key):
            circuit.restore(record, now_us)

    def _close(self, key: CircuitKey) -> None:
        circuit = self._failure_policy.circuits.of_type(key.tenant, key.type).get(key.dependency)
        if circuit is not None and not self._is_news("circuit", *key):
            circuit.close()

    def _impose(self, key: TypeKey) -> None:
        failure_policy = self._failure_policy
        failure_policy.watched.add(key.tenant)
        quarantine = failure_policy.quarantines.setdefault(
            key, Quarantine(failure_policy.quarantine_settings)
        )
        if not quarantine.is_on and not self._is_news("quarantine", *key):
            quarantine.impose()

    def _lift(self, key: TypeKey) -> None:
        quarantine = self._failure_policy.quarantines.get(key)
        if quarantine is not None and not self._is_news("quarantine", *key):
            quarantine.lift()

    def _is_news(self, kind: str, tenant: TenantId, subject: int, dependency: str = "") -> bool:
        """Whether it began or ended here since, and the store has yet to hear it."""
        asked = (kind, tenant, subject, dependency)
        return any(one[:4] == asked for one in self._failure_policy.news)

    def _end_throttles(self) -> None:
        now_us = self._clock.now_us()
        for tenant_type, one in self._failure_policy.crash_throttles.items():
            if one.is_over(now_us):
                one.lift()
                self._failure_policy.news.append(
                    RestraintChange("recycling", *tenant_type, is_on=False)
                )
