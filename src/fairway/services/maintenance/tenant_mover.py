"""Carries out moves of tenants between shards: a few rows at a time, and others go on meanwhile.

Every server says that it has heard of a move: from then on it takes and starts nothing of the
tenant, and nothing of it is on its way to the store any more. Connections of those that do not say
so, and are gone by the list of servers, are ended before rows move. The owner of the shard that the
tenant is in does the rest, under its term: it waits until nothing of the tenant runs, moves the
rows part by part, and switches with the last of them. Each of these steps has its line in the
audit. Should it die, the next owner goes on. What
comes too late to the shard that a tenant was in is brought along by the owner of its new one. What
comes next is decided in `core/ownership/tenant_move.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fairway.core.audit import PLATFORM, Act
from fairway.core.ids import ShardId, TenantId, Term
from fairway.core.ownership.tenant_move import (
    MoveAct,
    MoveLook,
    next_act,
    why_called_off,
    why_it_failed,
)
from fairway.core.tenant import Tenant
from fairway.runtime.clock import Clock
from fairway.runtime.loops import pause
from fairway.runtime.telemetry import logger
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.ownership.ownership import Ownership
from fairway.services.registry.audit_log import USUAL_LOG
from fairway.services.registry.tenants_and_keys import Directory
from fairway.store.connections.database import Connection, Database
from fairway.store.registry import tenant_moves as store
from fairway.store.registry.tenant_moves import ALL_PARTS, IN_PARTS, Way, parts_of

log = logger("tenant_mover")

ROWS_AT_ONCE = 100  # some milliseconds of the store's time
LAST_ROWS_MAX = 2_000  # of a table, that go along in the transaction that ends a move
REST_SECONDS = 2.0
STEP_SECONDS = 0.5
STEP_US = 500_000
STRAYS_US = 5_000_000  # between two looks for what came too late
RESTS = 4  # of as long as a part took, for others
ROUND_US = 1_000_000  # of parts; then it is looked whether it is called off
STRAY_PARTS = 100  # at once
SETTLE_US_MAX = 10_000_000  # for uses of connections that had begun; then it is tried again
SETTLE_LOOK_SECONDS = 0.02


class TenantMover:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        directory: Directory,
        clock: Clock,
        ownership: Ownership,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._directory = directory
        self._clock = clock
        self._ownership = ownership
        # (move, its state, table) → up to where
        self._cursors: dict[tuple[int, str, str], str | None] = {}
        self._settled: set[TenantId] = set()  # of these that move, nothing is on its way from here
        self._ending: dict[TenantId, set[str]] = {}  # jobs whose ends are on their way to disk
        self._strays_at_us = 0

    async def run_once(self, now_us: int) -> float:
        moving = self._known(self._dispatcher.homes().all_moving)
        is_held = self._dispatcher.holds().is_suspended  # known, but not held yet: it could start
        await self._hear({one.id for one in moving if is_held(one.id)})
        failed: Exception | None = None
        for tenant in moving:
            try:
                await self._go_on(tenant)
            except Exception as error:  # others' jobs may wait where they were before
                failed = error
        if now_us >= self._strays_at_us:
            self._strays_at_us = now_us + (STEP_US if await self._collect() else STRAYS_US)
        if failed is not None:
            raise failed
        return STEP_SECONDS if moving else REST_SECONDS

    def _known(self, ids: Collection[TenantId]) -> list[Tenant]:
        tenants = self._directory.tenants
        return [tenants[one] for one in ids if one in tenants]

    async def _hear(self, moving: set[TenantId]) -> None:
        """Whoever writes for a tenant asks whether it moves once it has a connection: so when all
        uses that had begun before we knew are over, nothing of it is on its way."""
        self._settled &= moving
        if moving - self._settled and await self._is_settled():
            self._settled |= moving
        if self._settled:
            who = self._ownership.server_name, self._database.fence.process
            async with self._database.background() as connection:
                await store.heard(connection, *who, self._settled)

    async def _is_settled(self) -> bool:
        """Wait for all uses of connections that have begun by now; whether they ended in time."""
        begun, until_us = self._database.under_way(), self._clock.now_us() + SETTLE_US_MAX
        while begun & self._database.under_way():
            if self._clock.now_us() > until_us:
                return False
            await pause(SETTLE_LOOK_SECONDS)
        return True

    # -- one move ------------------------------------------------------------------------------

    async def _go_on(self, tenant: Tenant) -> None:
        """What its owner does next; others do nothing."""
        home = self._dispatcher.homes().of(tenant.id)
        term = self._dispatcher.restored_term_of(home)
        if term is None or not self._dispatcher.is_open(home):
            return
        async with self._database.background() as connection:
            look = await store.look(connection, tenant.id)
        if look is None or look.from_shard != home:
            await self._directory.run_once(0)  # it is over: hear where the tenant is
            return
        running = self._running(tenant.id)
        act = next_act(look, running, parts_left=self._parts_left(look))
        try:
            await self._act(act, look, tenant, term)
        except Exception as error:  # whatever it is, operators read it where they look
            async with self._database.background() as connection:
                await store.say(connection, look.id, why_it_failed(error))
            raise

    async def _act(self, act: MoveAct, look: MoveLook, tenant: Tenant, term: Term) -> None:
        if act is MoveAct.MOVE_ROWS:
            await self._move_parts(look, term)
            return
        if act in (MoveAct.SWITCH, MoveAct.CALL_OFF, MoveAct.FINISH_RETURN):
            await self._end(act, look, tenant, term)
            return
        async with self._database.background() as connection:
            if act is MoveAct.WAIT:
                await store.say(connection, look.id, look.waits_for)
            elif act is MoveAct.END_CONNECTIONS:
                ended = await store.end_connections(connection, look)
                log.warning("connections of servers that stand still ended", count=ended)
            elif act is MoveAct.BEGIN:
                await self._begin(connection, look, tenant, term)
            elif act is MoveAct.TURN_BACK:
                await store.turn_back(connection, look, term)

    async def _begin(
        self, connection: Connection, look: MoveLook, tenant: Tenant, term: Term
    ) -> None:
        detail = f"Its rows go from shard {look.from_shard} to shard {look.to_shard} now."
        sides = {"move": look.state}, {"move": "moving"}
        async with connection.transaction():
            if await store.begin(connection, look, term):
                act = Act("begin_move", tenant.name, tenant.id, *sides, detail)
                await USUAL_LOG.add(connection, PLATFORM, act)

    def _running(self, tenant: TenantId) -> int:
        """Runs of its jobs, and ends that are not on disk yet."""
        running = sum(lease.job.tenant == tenant for lease in self._dispatcher.all_leases())
        unrecorded = self._dispatcher.letting_go().unrecorded()
        if running:
            self._ending.pop(tenant, None)
            return running
        ending = self._ending.get(tenant)
        self._ending[tenant] = set(unrecorded) if ending is None else ending & unrecorded
        return len(self._ending[tenant])

    def _parts_left(self, look: MoveLook) -> bool:
        return any(self._cursor(look, table) is not None for table in IN_PARTS)

    def _cursor(self, look: MoveLook, table: str) -> str | None:
        return self._cursors.get((look.id, look.state, table), IN_PARTS[table])

    async def _move_parts(self, look: MoveLook, term: Term) -> None:
        """Some parts; between two the store has some times as long for others."""
        until_us = self._clock.now_us() + ROUND_US
        while self._clock.now_us() < until_us:
            left = (one for one in parts_of(look.state) if self._cursor(look, one) is not None)
            table = next(left, None)
            if table is None or self._dispatcher.term_of(look.from_shard) != term:
                return
            began_us = self._clock.now_us()
            async with self._database.background() as connection:
                after = self._cursor(look, table) or ""
                part = await store.move_some(connection, look, term, table, after, ROWS_AT_ONCE)
            if part is None:
                return
            self._cursors[look.id, look.state, table] = (
                None if part.found < ROWS_AT_ONCE else part.last
            )
            await pause(RESTS * (self._clock.now_us() - began_us) / 1e6)

    async def _end(self, act: MoveAct, look: MoveLook, tenant: Tenant, term: Term) -> None:
        """In its new shard, or where it was. What is in the audit is so, and the other way round.
        Not over yet: too much was written meanwhile, and all tables are gone through again."""
        note = "" if act is MoveAct.SWITCH else why_called_off(look, self._running(tenant.id))
        async with self._database.background() as connection, connection.transaction():
            if act is MoveAct.SWITCH:
                is_done = await store.switch(connection, look, term, LAST_ROWS_MAX)
            elif act is MoveAct.FINISH_RETURN:
                is_done = await store.finish_return(connection, look, term, note, LAST_ROWS_MAX)
            else:
                is_done = await store.call_off(connection, look, term, note)
            if is_done:
                await USUAL_LOG.add(connection, PLATFORM, _end_of(look, tenant, note))
        self._cursors = {key: at for key, at in self._cursors.items() if key[0] != look.id}
        self._ending.pop(tenant.id, None)
        if not is_done:
            return
        if act is MoveAct.SWITCH:
            log.info("tenant moved", tenant=tenant.name, shard=look.to_shard)
        else:
            log.warning("the move of a tenant is called off", tenant=tenant.name, because=note)
        await self._directory.run_once(0)

    # -- what came too late ----------------------------------------------------------------------

    async def _collect(self) -> bool:
        """Whether there may be more of it."""
        places = self._left_places(self._known(self._dispatcher.homes().all_moved))
        if not places:
            return False
        async with self._database.background() as connection:
            found = await store.strays(connection, places)
        rows = 0
        for tenant, shard in found:
            home = self._dispatcher.homes().of(tenant)
            if (term := self._dispatcher.restored_term_of(home)) is not None:
                rows += await self._collect_from(Way(tenant, shard, home), term)
        return rows >= ROWS_AT_ONCE

    async def _collect_from(self, way: Way, term: Term) -> int:
        """Rows of one tenant, from one shard; however many there are, some at a time."""
        rows, tables = 0, list(ALL_PARTS)
        after = ALL_PARTS[tables[0]]
        for _ in range(STRAY_PARTS + len(ALL_PARTS)):
            async with self._database.background() as connection:
                asked = tables[0], after, ROWS_AT_ONCE
                part = await store.collect(connection, way, term, *asked)
            if part is None:
                break
            rows += part.moved
            after = part.last or ""
            if part.found < ROWS_AT_ONCE:
                del tables[0]
                if not tables:
                    break
                after = ALL_PARTS[tables[0]]
        if rows:
            log.warning("rows came too late to a shard", rows=rows, **way._asdict())
        return rows

    def _left_places(self, tenants: Collection[Tenant]) -> Sequence[tuple[TenantId, ShardId]]:
        """Where tenants were that are at home here, and stay."""
        homes, is_open = self._dispatcher.homes(), self._dispatcher.is_open
        return [
            (one.id, shard)
            for one in tenants
            if one.moved_from and one.moving_to is None and is_open(homes.of(one.id))
            for shard in one.moved_from
            if shard != homes.of(one.id)
        ]


def _end_of(look: MoveLook, tenant: Tenant, why_not: str) -> Act:
    """The line in the audit; `why_not` is empty of a move that came to its end."""
    if why_not:
        sides = {"move": look.state}, {"move": "called_off"}
        return Act("call_off_move", tenant.name, tenant.id, *sides, why_not)
    return Act(
        "finish_move", tenant.name, tenant.id, {"shard": look.from_shard}, {"shard": look.to_shard}
    )
