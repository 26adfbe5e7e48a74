"""The loop that decides how many workers each pool should have.

One server decides, the owner of the first shard, by what all servers see; of two that believe they
do, the store hears one. Every server keeps the workers that are to be spared from getting jobs. It
starts and ends no process: fleets and KEDA read what it decided (`api/operators/autoscale.py`).
Without fresh sight of all shards nothing is decided, and what was decided stays.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from fairway.core.autoscale.facts import (
    PoolFacts,
    ScaleDecision,
    ScaleMemory,
    WorkerLoad,
)
from fairway.core.autoscale.policy import decide
from fairway.core.autoscale.rules import rules_of
from fairway.core.errors import Unavailable
from fairway.core.ids import FIRST_SHARD
from fairway.core.insight.fleet_load import FleetLoad
from fairway.core.insight.sight import TOLD_MS_MAX, ServerSight
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.pools import Pool
from fairway.runtime.telemetry import Metrics, logger
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.store_clock import StoreClock
from fairway.store import autoscale as store
from fairway.store.connections.database import DISCONNECTED, Database

log = logger("autoscale")

REST_SECONDS = 2.0
DECISIONS_KEPT = 10_000
FORGET_AT_ONCE = 1_000


class Autoscaler:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        seen: Callable[[], ServerSight | None],
        store_clock: StoreClock,
        metrics: Metrics,
        tenant_shards: TenantShards,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._seen = seen
        self._clock = store_clock
        self._metrics = metrics
        self._tenant_shards = tenant_shards
        self._memories: dict[str, ScaleMemory] = {}  # of pools, while this server decides
        self._rounds: dict[str, int] = {}  # pool → the row that its memory belongs to
        self._decides_since_ms: int | None = None
        self.rows: dict[str, store.PoolScale] | None = None  # by pool; None: not read yet

    async def run_once(self, now_us: int) -> float:
        try:
            async with self._database.background() as connection:
                found = await store.all_pools(connection)
        except (*DISCONNECTED, Unavailable):
            return REST_SECONDS
        self.rows = {row.pool: row for row in found}
        self._close_workers()
        self._tell()
        if self._may_decide():
            for row in found:
                await self._decide(row)
        return REST_SECONDS

    # -- whoever hears workers -----------------------------------------------------------------

    def _close_workers(self) -> None:
        """Those that are to be spared get no more jobs; those that are not any more, get some."""
        closed, pools = self._dispatcher.closed_workers(), self._dispatcher.pools.by_name
        names = [
            (pools[row.pool].number, name)
            for row in (self.rows or {}).values()
            if row.mode == "on" and row.pool in pools
            for name in row.closed
        ]
        closed.replace(names, self._clock.now_us())
        for session in self._dispatcher.all_sessions():
            is_closed = closed.of(session) is not None
            if is_closed == session.is_closed:
                continue
            session.close(is_closed=is_closed)
            if not is_closed:
                self._dispatcher.serve(session)
                if session.outbox:
                    session.wake()

    def _tell(self) -> None:
        for row in (self.rows or {}).values():
            wanted, short_of = row.wanted_workers or 0, row.short_of
            self._metrics.autoscale_wanted.labels(row.pool).set(wanted)
            self._metrics.autoscale_short_of.labels(row.pool).set(short_of)

    # -- whoever decides -----------------------------------------------------------------------

    def _may_decide(self) -> bool:
        """The first look after a take-over is not enough: it may be of before."""
        now_ms = self._clock.unix_ms()
        if not self._dispatcher.is_open(FIRST_SHARD):
            self._decides_since_ms = None
            self._memories.clear()
            return False
        if self._decides_since_ms is None:
            self._decides_since_ms = now_ms
        seen = self._seen()
        if seen is None or seen.shards_owned < self._tenant_shards.to_be_owned:
            return False
        return seen.at_ms > self._decides_since_ms and now_ms - seen.at_ms <= TOLD_MS_MAX

    async def _decide(self, row: store.PoolScale) -> None:
        pool, facts = self._dispatcher.pools.by_name.get(row.pool), self.facts_of(row.pool)
        if row.mode == "off" or pool is None or facts is None:
            self._memories.pop(row.pool, None)
            return
        memory = self._memory(row, facts)
        rules = rules_of(pool, row.down_after_seconds)
        decision = decide(facts, row.settings, rules, memory, self._clock.unix_ms())
        if await self._write(row, facts, memory.wanted, decision):
            self._memories[row.pool] = decision.memory

    def _memory(self, row: store.PoolScale, facts: PoolFacts) -> ScaleMemory:
        """Of this server; or what can be told by the row, which another server or an operator
        changed since."""
        known = self._memories.get(row.pool)
        if known is not None and self._rounds.get(row.pool) == row.round:
            return known
        leaving = tuple(row.leaving)
        wanted = facts.workers - len(leaving) if row.wanted_workers is None else row.wanted_workers
        closing = tuple(name for name in row.closed if name not in leaving)
        return ScaleMemory(wanted=max(wanted, 0), closing=closing, leaving=leaving)

    async def _write(
        self, row: store.PoolScale, facts: PoolFacts, before: int, decision: ScaleDecision
    ) -> bool:
        """Whether it counts: another server may have decided since the row was read."""
        decided = store.Decided(
            row.pool,
            row.round,
            decision.wanted,
            decision.short_of,
            list(decision.closed),
            list(decision.may_go),
        )
        self._rounds[row.pool] = row.round
        if decision.code is None and decided[2:] == row[-4:]:
            return True
        try:
            async with self._database.background() as connection, connection.transaction():
                after = await store.put_decided(connection, decided)
                if after is None:
                    return False
                if decision.code is not None:
                    await store.add_decision(connection, _recorded(row, facts, before, decision))
                    await store.forget_decisions(connection, DECISIONS_KEPT, FORGET_AT_ONCE)
        except (*DISCONNECTED, Unavailable):
            return False
        self._rounds[row.pool] = after
        if decision.code is not None:
            log.info("workers wanted", pool=row.pool, why=decision.reason, code=decision.code)
        return True

    # -- for all -------------------------------------------------------------------------------

    def facts_of(self, pool: str) -> PoolFacts | None:
        """As all servers see it now; None: nobody has looked yet, or there is no such pool."""
        seen, known = self._seen(), self._dispatcher.pools.by_name.get(pool)
        sights = [] if seen is None else [one for one in seen.pools if one.name == pool]
        return _facts(sights[0].load, known) if sights and known is not None else None


def _facts(load: FleetLoad, pool: Pool) -> PoolFacts:
    return PoolFacts(
        workers=load.workers,
        slots=load.slots,
        busy_slots=load.busy_slots,
        busy_workers=load.busy_workers,
        closed_workers=load.closed_workers,
        backlog_jobs=load.runnable,
        backlog_slot_seconds=load.runnable_ms / 1000,
        oldest_runnable_age_seconds=load.oldest_ms / 1000,
        spare=tuple(WorkerLoad(one.name, one.busy, one.idle_ms, one.closed) for one in load.spare),
        slots_of_new_worker=pool.slots_default,
    )


def _recorded(
    row: store.PoolScale, facts: PoolFacts, before: int, decision: ScaleDecision
) -> store.NewDecision:
    assert decision.code is not None
    known = {
        "workers": facts.workers,
        "busy_workers": facts.busy_workers,
        "slots": facts.slots,
        "busy_slots": facts.busy_slots,
        "mean_busy_slots": round(decision.memory.fast_slots, 3),
        "backlog_jobs": facts.backlog_jobs,
        "backlog_slot_seconds": round(facts.backlog_slot_seconds, 3),
        "oldest_runnable_age_seconds": facts.oldest_runnable_age_seconds,
        "short_of": decision.short_of,
    }
    return store.NewDecision(
        row.pool,
        before,
        decision.wanted,
        decision.code,
        decision.reason,
        row.mode == "dry_run",
        msgspec.json.encode(known).decode(),
    )
