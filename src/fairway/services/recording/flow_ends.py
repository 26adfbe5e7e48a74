"""Ends of runs as they are written: those of jobs in flows are counted in the same transaction.

The hot statements leave jobs that are in a flow alone, which costs the others nothing. What a lane
did not write is either refused, because its lease was lost, or in a flow; then the same statement
writes it once more, with its tenant's lock and the counters, beside the lanes (`flow_lines.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from fairway.core.ids import ShardId, Term
from fairway.services.jobs.flow_news import FlowNews
from fairway.services.recording.row_writer import Write
from fairway.store import flows, outcomes
from fairway.store.connections import shard_terms
from fairway.store.connections.database import Connection
from fairway.store.connections.shard_terms import ShardsLost
from fairway.store.flow_locks import Wait
from fairway.store.flows import Key

TRIES_BEFORE_STANDING = 4  # of a lock that was not free, in about a third of a second


#: What a statement takes of an end, by its kind.
EndRow: TypeAlias = (
    outcomes.SuccessRow | outcomes.Parent | outcomes.Settlement | outcomes.RefusedEnd
)
Row = TypeVar("Row", bound=EndRow)
Taken = TypeVar("Taken", bound=EndRow, contravariant=True)


class EndStatement(Protocol[Taken]):
    async def __call__(
        self,
        connection: Connection,
        terms: Mapping[ShardId, Term],
        done: Sequence[Taken],
        *,
        in_flow: bool = False,
    ) -> set[str]: ...


class LeftOut(NamedTuple):
    """What a lane did not write, by job."""

    refused: set[str]  # by the guard: their leases were lost
    in_flow: set[str]  # to be counted


class FlowEnds:
    def __init__(self, news: FlowNews) -> None:
        self._news = news
        self._standing = asyncio.Lock()

    def uncounted(self, statement: EndStatement[Row]) -> Write[Row, LeftOut]:
        """For lanes: writes what is in no flow, and answers what it left out."""

        async def write(
            connection: Connection, terms: Mapping[ShardId, Term], done: Sequence[Row]
        ) -> LeftOut:
            missing = await statement(connection, terms, done)
            if not missing:
                return LeftOut(missing, set())
            if lost := await shard_terms.lost_of(connection, terms):
                raise ShardsLost(lost)
            left = [row for row in done if _key(row)[1] in missing]
            shards = [*map(_shard, left)]
            in_flow = await flows.in_flows(connection, [*map(_key, left)], shards)
            return LeftOut(missing - in_flow, in_flow)

        return write

    def counted(self, statement: EndStatement[Row]) -> Write[Row, set[str]]:
        """For members of flows of one tenant: writes and counts; answers what is refused.

        While somebody else has the tenant's lock it gives up at once, to be called again. A lock
        that goes from hand to hand is never found free: so one, of all, stands in line for it.
        """
        tries, write_within = 0, self._within_lock(statement)

        async def write(
            connection: Connection, terms: Mapping[ShardId, Term], done: Sequence[Row]
        ) -> set[str]:
            nonlocal tries
            tries += 1
            if tries <= TRIES_BEFORE_STANDING or self._standing.locked():
                return await write_within(Wait.NOT, connection, terms, done)
            async with self._standing:
                return await write_within(Wait.SHORT, connection, terms, done)

        return write

    def alone(self, statement: EndStatement[Row]) -> Write[Row, set[str]]:
        """For a single end, whether in a flow or not; answers whether it is refused."""
        uncounted, write_within = self.uncounted(statement), self._within_lock(statement)

        async def write(
            connection: Connection, terms: Mapping[ShardId, Term], done: Sequence[Row]
        ) -> set[str]:
            left = await uncounted(connection, terms, done)
            if left.in_flow:
                return await write_within(Wait.SHORT, connection, terms, done)
            return left.refused

        return write

    def _within_lock(
        self, statement: EndStatement[Row]
    ) -> Callable[[Wait, Connection, Mapping[ShardId, Term], Sequence[Row]], Awaitable[set[str]]]:
        async def write(
            wait: Wait,
            connection: Connection,
            terms: Mapping[ShardId, Term],
            done: Sequence[Row],
        ) -> set[str]:
            (shard,) = terms  # members of one tenant's flows
            async with self._news.counting(connection, shard, [*map(_key, done)], wait):
                missing = await statement(connection, terms, done, in_flow=True)
                if missing and (lost := await shard_terms.lost_of(connection, terms)):
                    raise ShardsLost(lost)
                return missing

        return write


def _shard(row: EndRow) -> ShardId:
    return (row.success if isinstance(row, outcomes.Parent) else row)[0]


def _key(row: EndRow) -> Key:
    _, tenant, job = (row.success if isinstance(row, outcomes.Parent) else row)[:3]
    return tenant, job
