"""Hands what is held here over to the tenants' homes: once, by id.

Before anything is sent it is written down to whom: from then on that region may have it, whatever
is heard. If the home is another one by then, the region that was asked is asked whether it has it,
and until it answers the job is in doubt and goes nowhere: it is run late rather than twice. The
home may be this region: then it is handed to itself, the same way.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from fairway.core.ids import ShardId, TenantId
from fairway.core.regions.hand_over import is_to_be_sent_again, said_of
from fairway.core.regions.held import HeldKind
from fairway.runtime.telemetry import logger
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.regions.home_table import HomeTable
from fairway.services.regions.peer_calls import (
    BROKEN,
    JOBS_PATH,
    KNOWN_PATH,
    ROWS_PATH,
    RegionPeers,
)
from fairway.services.regions.region_metrics import RegionMetrics
from fairway.store.connections.database import Database
from fairway.store.regions import held_jobs as store
from fairway.store.regions.held_jobs import HeldRow

log = logger("regions")

ROWS_AT_ONCE = 200
CALL_BYTES_MAX = 4 << 20
TENANTS_PER_ROUND = 100
CALL_SECONDS_MAX = 10.0
BUSY_SECONDS = 0.02
REST_SECONDS = 0.5

_encode = msgspec.msgpack.Encoder().encode


class HandOver:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        homes: HomeTable,
        peers: RegionPeers,
        metrics: RegionMetrics,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._homes = homes
        self._peers = peers
        self._metrics = metrics

    async def run_once(self, now_us: int) -> float:
        shards, did_something = self._dispatcher.open_shards(), False
        if not shards:
            return REST_SECONDS
        async with self._database.background() as connection:
            busy = await store.shards_with_held(connection, list(shards))
        for shard in busy:
            async with self._database.background() as connection:
                tenants = await store.tenants_with_held(connection, shard, TENANTS_PER_ROUND)
            for tenant in tenants:
                did_something |= await self._hand_over(shard, tenant)
        return BUSY_SECONDS if did_something else REST_SECONDS

    async def _hand_over(self, shard: ShardId, tenant: TenantId) -> bool:
        """One call's worth; whether anything left."""
        home = self._homes.home_of(tenant)
        if self._peers.is_away(home):
            return False
        async with self._database.background() as connection:
            rows = await store.held_of(connection, shard, tenant, ROWS_AT_ONCE)
        doubtful = [row for row in rows if row.offered_to not in (None, home)]
        if doubtful:
            return await self._make_sure(shard, tenant, doubtful)
        rows = _one_kind(rows)
        if not rows:
            return False
        ids = [row.id for row in rows]
        async with self._database.background() as connection:
            await store.offer(connection, shard, tenant, ids, home)
        try:
            answers = await self._send(home, tenant, rows)
        except (*BROKEN, msgspec.DecodeError) as error:
            log.warning("home takes nothing", region=home, error=repr(error))
            return False
        return await self._settle(shard, tenant, home, rows, answers)

    async def _send(self, home: str, tenant: TenantId, rows: Sequence[HeldRow]) -> list[Any]:
        if rows[0].kind == HeldKind.SUBMISSION:
            body = _encode([msgspec.Raw(row.body) for row in rows])
            answer = await self._peers.call(home, JOBS_PATH, body, CALL_SECONDS_MAX)
            items: list[Any] = msgspec.msgpack.decode(answer)[0]
        else:
            body = _encode([tenant, rows[0].kind, [row.body for row in rows]])
            answer = await self._peers.call(home, ROWS_PATH, body, CALL_SECONDS_MAX)
            items = msgspec.msgpack.decode(answer)
        if len(items) != len(rows):
            raise msgspec.DecodeError("an answer for each row")
        return items

    async def _settle(
        self,
        shard: ShardId,
        tenant: TenantId,
        home: str,
        rows: Sequence[HeldRow],
        answers: Sequence[Any],
    ) -> bool:
        taken, others = list[HeldRow](), list[tuple[str, Any]]()
        for row, answer in zip(rows, answers, strict=True):
            is_moved = row.kind != HeldKind.SUBMISSION  # it is a job already: nothing ends its wait
            if is_to_be_sent_again(answer) or (is_moved and isinstance(answer, dict)):
                continue  # it is held on, and sent again
            told = said_of(row.id, row.jobs, answer)
            if told is None:
                taken.append(row)
            else:
                others.append((row.id, told))
        async with self._database.background() as connection, connection.transaction():
            if taken:
                await store.handed_over(connection, shard, tenant, [row.id for row in taken])
            for id_, told in others:
                await store.tell(connection, shard, tenant, id_, json.dumps(told))
        if taken or others:
            count = sum(max(row.jobs, 1) for row in taken)
            self._metrics.handed_over.labels(home).inc(count)
            log.info("handed over", region=home, tenant=tenant, jobs=count, otherwise=len(others))
        return bool(taken or others)

    async def _make_sure(self, shard: ShardId, tenant: TenantId, rows: Sequence[HeldRow]) -> bool:
        """Of a region that may have them: those that it has are its own to hand over."""
        region = rows[0].offered_to or ""
        ids = [row.id for row in rows if row.offered_to == region]
        if self._peers.is_away(region):
            return False
        try:
            body = _encode([tenant, ids])
            answer = await self._peers.call(region, KNOWN_PATH, body, CALL_SECONDS_MAX)
            known = set(msgspec.msgpack.decode(answer, type=list[str]))
        except (*BROKEN, msgspec.DecodeError, KeyError):
            return False
        async with self._database.background() as connection, connection.transaction():
            if known:
                await store.handed_over(connection, shard, tenant, sorted(known))
            if rest := [one for one in ids if one not in known]:
                await store.withdraw(connection, shard, tenant, rest)
        return True


def _one_kind(rows: Sequence[HeldRow]) -> list[HeldRow]:
    """Of the first one's, as many as go in one call."""
    found: list[HeldRow] = []
    size_bytes = 0
    for row in rows:
        size_bytes += len(row.body)
        if row.kind != rows[0].kind or (found and size_bytes > CALL_BYTES_MAX):
            break
        found.append(row)
    return found
