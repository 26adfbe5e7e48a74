"""Closes months, shard by shard: from then on nothing is booked into them, and statements are kept.

    log rolled up ─▶ books closed until the month's end ─▶ a statement for each tenant ─▶ stated

Each step is on disk before the next, and each can be done again: after a crash the next owner goes
on from what the books say. A month is closed an hour after its end, so that what ended in its last
minutes is in it. Not while the store's clock and ours are far apart: what is closed stays closed,
and a clock that jumped a month ahead for a moment would close one that goes on, for all tenants.
"""

from __future__ import annotations

from datetime import timedelta

from fairway.core.billing.periods import Month, month_of
from fairway.core.ids import ShardId, TenantId
from fairway.core.retention import may_forget
from fairway.runtime.telemetry import logger
from fairway.services.billing.roll_up import RollUp
from fairway.services.billing.statements import Statements
from fairway.services.store_clock import StoreClock
from fairway.store.billing import statements as store
from fairway.store.billing.statements import Books, ShardTenants
from fairway.store.connections.database import Database

log = logger("billing")

REST_SECONDS = 60.0
SOON_SECONDS = 0.5
GRACE = timedelta(hours=1)
TENANTS_AT_ONCE = 50
NO_TENANT = TenantId(0)


class MonthCloser:
    def __init__(
        self,
        database: Database,
        roll_up: RollUp,
        statements: Statements,
        store_clock: StoreClock,
    ) -> None:
        self._database = database
        self._roll_up = roll_up
        self._statements = statements
        self._store_clock = store_clock
        #: The last tenant that has its statement; after a restart all are looked at again.
        self._after: dict[tuple[ShardId, Month], TenantId] = {}
        self._failed: set[tuple[ShardId, Month]] = set()  # some statement was not kept

    async def run_once(self, now_us: int) -> float:
        shards = await self._roll_up.kept_here()
        async with self._database.background() as connection:
            found = await store.read_books(connection, shards)
        rests: list[float] = []
        failure: Exception | None = None
        for books in found:
            try:
                rests.append(await self._advance(books))
            except Exception as error:  # the months of shards behind it go on; it is tried again
                failure = error
                log.warning("month not closed yet", shard=books.shard, error=repr(error))
        if failure is not None and not rests:
            raise failure  # not one shard's trouble
        return min(rests, default=REST_SECONDS)

    async def _advance(self, books: Books) -> float:
        """Months are closed whatever becomes of statements: shards close behind the one with their
        book, and one tenant's statement that cannot be kept is to stop none of them."""
        rest, failure = REST_SECONDS, None
        if books.closed_until > books.stated_until:
            try:
                rest = await self._state(books)
            except Exception as error:  # not `finally`: whoever stops us is not to wait for more
                failure = error
        rest = min(rest, await self._close(books))
        if failure is not None:
            raise failure
        return rest

    async def _close(self, books: Books) -> float:
        month = month_of(books.closed_until)
        if books.now < month.ends + GRACE:
            return REST_SECONDS
        skew_seconds = self._store_clock.ahead_seconds(books.now)
        if not may_forget(skew_seconds):
            log.error("clocks are apart, no month is closed", store_ahead_seconds=skew_seconds)
            return REST_SECONDS
        await self._roll_up.drain(books.shard)
        async with self._database.background() as connection:
            is_closed = await store.close_until(connection, books.shard, month.begins, month.ends)
        if not is_closed:  # it waits for the shard with its book, or for a roll-up that is behind
            return REST_SECONDS
        log.info("month closed", shard=books.shard, month=str(month))
        return SOON_SECONDS

    async def _state(self, books: Books) -> float:
        shard, month = books.shard, month_of(books.stated_until)
        after = self._after.get((shard, month), NO_TENANT)
        which = ShardTenants(shard, after, month.ends)
        async with self._database.background() as connection:
            tenants = await store.tenants_to_state(connection, which, TENANTS_AT_ONCE)
        for tenant in tenants:
            try:
                await self._statements.keep(tenant, month)
            except Exception as error:  # the others get theirs; this one is tried again
                log.warning("statement not kept yet", tenant=tenant, error=repr(error))
                self._failed.add((shard, month))
            self._after[shard, month] = tenant
        if len(tenants) < TENANTS_AT_ONCE:
            self._after.pop((shard, month), None)
            if (shard, month) in self._failed:
                self._failed.remove((shard, month))
                return REST_SECONDS
            async with self._database.background() as connection:
                is_stated = await store.stated_until(
                    connection, shard, month.begins, month.ends, books.now
                )
            if not is_stated:  # a tenant moves there: it is stated when it has come
                return REST_SECONDS
            log.info("month stated", shard=shard, month=str(month))
        return SOON_SECONDS
