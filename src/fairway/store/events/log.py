"""A tenant's log of events, read in order; and notices on their way to it.

Events wait in the inbox until the owner of the shard gives them their positions (`inbox.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from fairway.core.events.event import Event, Fact, NewEvent
from fairway.core.ids import ShardId, TenantId
from fairway.store.arrays import columns
from fairway.store.connections.database import Connection, execute, fetch, fetch_value
from fairway.store.sql import load

_SQL = load("log.sql")

CHUNK_EVENTS_MAX = 1000  # in one row of the log, whoever writes it
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class EventPage(NamedTuple):
    events: list[Event]  # ascending
    trimmed_to: int  # positions up to it are gone by retention; 0: none
    last: int  # the newest position there is


class _Stored(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """As `move_events` writes it; its position is its place in the chunk."""

    at_us: int
    kind: str
    job: str | None
    subject: str
    data: dict[str, Fact]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[_Stored]).decode


async def add_notices(connection: Connection, events: Sequence[NewEvent]) -> None:
    """In the caller's transaction; they are in the log a moment after it."""
    texts = [(*one[:5], one.facts and _encode(one.facts).decode()) for one in events]
    rows = columns(texts, "tenants", "kinds", "subjects", "details", "jobs", "facts")
    await execute(connection, _SQL["add_notices"], **rows)


async def read_events(
    connection: Connection, shard: ShardId, tenant: TenantId, after: int, limit: int
) -> EventPage:
    """The next events after a position: at most so many, without a gap but for what was trimmed."""
    rows = await fetch(
        connection, _SQL["read_events"],
        shard=shard, tenant=tenant, after=after, limit=limit, chunk_max=CHUNK_EVENTS_MAX,
    )  # fmt: skip
    last, first, next_ = rows[0]["last"], rows[0]["first"], rows[0]["next"]
    if next_ is not None and next_ > after + 1:
        first = next_  # a day in between is gone: its clock was wrong
    events: list[Event] = []
    for row in rows:
        if row["events"] is not None:
            skipped = max(0, after + 1 - row["first_position"])
            stored = _decode(row["events"])[skipped : skipped + limit - len(events)]
            begin = row["first_position"] + skipped
            if events and begin != events[-1].position + 1:
                break  # the next page tells of the gap
            events += [_event(begin + n, one) for n, one in enumerate(stored)]
    return EventPage(events, last if first is None else first - 1, last)


async def last_before(
    connection: Connection, shard: ShardId, tenant: TenantId, below: int
) -> int | None:
    """The newest position below one that a chunk ends with; None: the log begins later."""
    found: int | None = await fetch_value(
        connection, _SQL["last_before"], shard=shard, tenant=tenant, below=below
    )
    return found


def _event(position: int, stored: _Stored) -> Event:
    at = _EPOCH + timedelta(microseconds=stored.at_us)
    return Event(position, at, stored.kind, stored.job, stored.subject, stored.data)


async def read_heads(
    connection: Connection, tenants: Sequence[tuple[ShardId, TenantId]]
) -> dict[TenantId, int]:
    """The newest position of each; a tenant without events is left out."""
    rows = await fetch(connection, _SQL["read_heads"], **columns(tenants, "shards", "tenants"))
    return {TenantId(row["tenant"]): row["last"] for row in rows}
