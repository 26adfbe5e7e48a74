"""Ends of runs as they are written: those of jobs in flows are counted in the same transaction.

The hot statements leave jobs that are in a flow alone, which costs the others nothing. What they
did not write, because it is in a flow or because its lease was lost, is written by the same
statement once more, in one transaction with the counters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from fairway.core.ids import JobId, ShardId, TenantId, Term
from fairway.services.jobs.flow_news import FlowNews
from fairway.store import outcomes
from fairway.store.connections.database import Connection


class EndStatement(Protocol):
    async def __call__(
        self,
        connection: Connection,
        shard: ShardId,
        term: Term,
        done: Sequence[Any],
        *,
        in_flow: bool = False,
    ) -> set[str]: ...


class FlowEnds:
    def __init__(self, news: FlowNews) -> None:
        self._news = news

    async def record_successes(
        self, connection: Connection, shard: ShardId, term: Term, done: Sequence[Any]
    ) -> set[str]:
        missing = await outcomes.record_successes(connection, shard, term, done)
        if missing:
            left = [one for one in done if one[1] in missing]
            return await self._count(outcomes.record_successes, connection, shard, term, left)
        return missing

    async def record_parents(
        self, connection: Connection, shard: ShardId, term: Term, done: Sequence[outcomes.Parent]
    ) -> set[str]:
        missing = await outcomes.record_parents(connection, shard, term, done)
        if missing:
            left = [one for one in done if one.success.job in missing]
            return await self._count(outcomes.record_parents, connection, shard, term, left)
        return missing

    async def settle(
        self,
        connection: Connection,
        shard: ShardId,
        term: Term,
        done: Sequence[outcomes.Settlement],
    ) -> set[str]:
        missing = await outcomes.settle(connection, shard, term, done)
        if missing:
            left = [one for one in done if one.job in missing]
            return await self._count(outcomes.settle, connection, shard, term, left)
        return missing

    async def end_refused(
        self,
        connection: Connection,
        shard: ShardId,
        term: Term,
        done: Sequence[outcomes.RefusedEnd],
    ) -> set[str]:
        missing = await outcomes.end_refused(connection, shard, term, done)
        if missing:
            left = [one for one in done if one.job in missing]
            return await self._count(outcomes.end_refused, connection, shard, term, left)
        return missing

    async def _count(
        self,
        statement: EndStatement,
        connection: Connection,
        shard: ShardId,
        term: Term,
        left: Sequence[Any],
    ) -> set[str]:
        async with self._news.counting(connection, shard, map(_key, left)):
            return await statement(connection, shard, term, left, in_flow=True)


def _key(row: Any) -> tuple[TenantId, JobId]:
    tenant, job = (row.success if isinstance(row, outcomes.Parent) else row)[:2]
    return tenant, job
