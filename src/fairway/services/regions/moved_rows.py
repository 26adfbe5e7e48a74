"""Takes in unfinished jobs and schedules of a tenant that has its home here now, as rows.

They come from the store that they waited in, with their attempts and their times; names of types
and pools become the numbers of this store. The same ids again are the same jobs. One whose
Idempotency-Key was used here meanwhile is the job that has it. A call that is held here and that
the other region had taken after all is settled by the coming of its job.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from fairway.core.backlog.streams import StreamKey
from fairway.core.errors import FairwayError, InvalidRequest
from fairway.core.ids import JobId, ShardId, TenantId
from fairway.core.lifecycle import State
from fairway.core.regions.held import HeldKind
from fairway.core.regions.homes import HomeVersion, Meant
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.submit.hints import Hints
from fairway.services.submit.out_of_place import not_at_home
from fairway.store.connections.database import Connection, Database
from fairway.store.regions import held_jobs as store
from fairway.store.regions.regions import stay_at_home
from fairway.store.submissions import KeyClaim, claim_keys


class MovedRow(msgspec.Struct):
    """A row of another region's store."""

    row: dict[str, Any]
    type: str
    pool: str
    key: str | None = None
    body_hash: str | None = None


class MovedCall(msgspec.Struct, array_like=True):
    """Rows of one tenant, from region to region."""

    tenant: TenantId
    kind: int
    rows: list[bytes]
    meant: Meant


class AskedJobs(msgspec.Struct, array_like=True):
    """Whether a region has, or ever had, jobs of a tenant that were sent to it under this home."""

    tenant: TenantId
    ids: list[str]
    asker: str
    under: HomeVersion


class MovedLot(NamedTuple):
    """Rows of one tenant, so of one shard."""

    tenant: TenantId
    kind: HeldKind
    rows: list[MovedRow]
    meant: Meant

    @property
    def shard(self) -> ShardId:
        return ShardId(self.rows[0].row["shard"])


class MovedRows:
    def __init__(
        self,
        database: Database,
        directory: Directory,
        dispatcher: Dispatcher,
        hints: Hints,
        on_scheduled: Callable[[], None],
    ) -> None:
        self._database = database
        self._directory = directory
        self._dispatcher = dispatcher
        self._hints = hints
        self._on_scheduled = on_scheduled

    async def take(self, lot: MovedLot) -> list[Any]:
        """For each row: nothing, if it is here now; the job that it is, in a list; or why not."""
        refused = self._in_own_pools(lot.rows)
        all_rows, lot = (
            lot.rows,
            lot._replace(rows=[one for one in lot.rows if one.pool not in refused]),
        )
        if not lot.rows:
            return [refused[one.pool] for one in all_rows]
        types = await self._directory.know_types({one.type for one in lot.rows}, lot.tenant)
        for one in lot.rows:
            one.row["type"] = types[one.type]
        async with self._database.background() as connection, connection.transaction():
            if not await stay_at_home(connection, {lot.tenant: lot.meant}):
                raise not_at_home()
            became = await self._claim(connection, lot)
            fresh = [one for one in lot.rows if one.row.get("id") not in became]
            if fresh:
                texts = [msgspec.json.encode(one.row).decode() for one in fresh]
                await store.insert_moved(connection, lot.kind, lot.shard, lot.tenant, texts)
            if fresh and lot.kind is HeldKind.JOB:
                ids = [one.row["id"] for one in fresh]
                await store.arrived(connection, lot.shard, lot.tenant, ids)
        if lot.kind is HeldKind.JOB and fresh:
            self._announce(lot.shard, fresh)
        return [refused.get(one.pool) or _answer(one, became) for one in all_rows]

    def _in_own_pools(self, rows: Sequence[MovedRow]) -> dict[str, FairwayError]:
        """Give each row this store's number of its pool; answers the pools that are not here."""
        refused: dict[str, FairwayError] = {}
        for one in rows:
            try:
                one.row["pool"] = self._directory.pools.named(one.pool, "/pool").number
            except InvalidRequest as error:
                refused[one.pool] = error
        return refused

    async def known(
        self, tenant: TenantId, shard: ShardId, ids: Sequence[str], *, but_offered_to: str | None
    ) -> set[str]:
        """Which of these are here, as jobs or held, but for what was offered to that region."""
        asked = shard, tenant, ids
        async with self._database.background() as connection:
            return await store.known_jobs(connection, *asked, but_offered_to=but_offered_to)

    async def _claim(self, connection: Connection, lot: MovedLot) -> dict[str, JobId]:
        """Jobs whose keys others have here → those others."""
        claims = [
            KeyClaim(lot.tenant, one.key, bytes.fromhex(one.body_hash), JobId(one.row["id"]))
            for one in lot.rows
            if one.key is not None and one.body_hash is not None
        ]
        if not claims:
            return {}
        taken = await claim_keys(connection, lot.shard, claims)
        by_key = {(one.tenant, one.key): one.job for one in claims}
        return {
            by_key[key]: holder.job for key, holder in taken.items() if holder.job != by_key[key]
        }

    def _announce(self, shard: ShardId, rows: Sequence[MovedRow]) -> None:
        """Whoever owns the shard reads what waits from the store."""
        firsts: dict[StreamKey, str] = {}
        for row in (one.row for one in rows if one.row["state"] == State.QUEUED):
            key = StreamKey(row["tenant"], row["pool"], row["type"], row["priority"], row["lane"])
            firsts[key] = min(firsts.get(key, row["id"]), row["id"])
        is_later = any(one.row["state"] == State.SCHEDULED for one in rows)
        if not self._dispatcher.owns(shard):
            self._hints.add(shard, firsts)
            return
        if firsts:
            self._dispatcher.hinted(shard, firsts)
        if is_later:
            self._on_scheduled()


def _answer(one: MovedRow, became: dict[str, JobId]) -> Any:
    other = became.get(one.row.get("id", ""))
    return None if other is None else [[other, True]]
