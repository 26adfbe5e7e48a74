"""Which of many shards a loop has something to do in: one statement instead of one for each.

Says nothing of what there is: whoever hears of a shard looks at it with its own statements, under
its term. A shard that is not named has nothing, or has had nothing a moment ago.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from fairway.core.ids import ShardId
from fairway.store.connections.database import Connection, fetch, fetch_values
from fairway.store.sql import Statement, load

_SQL = load("shard_looks.sql")

#: What may be there to do, as the statements are called.
Work: TypeAlias = Literal[
    "past_last_moments",
    "queued",
    "with_flows_owed",
    "with_outbox",
    "with_news",
    "with_usage",
    "with_webhooks",
    "with_actions",
]
#: What comes at its time.
Timed: TypeAlias = Literal["scheduled", "ticking"]


_OF_WORK: dict[Work, Statement] = {
    "past_last_moments": _SQL["shards_past_last_moments"],
    "queued": _SQL["shards_queued"],
    "with_flows_owed": _SQL["shards_with_flows_owed"],
    "with_outbox": _SQL["shards_with_outbox"],
    "with_news": _SQL["shards_with_news"],
    "with_usage": _SQL["shards_with_usage"],
    "with_webhooks": _SQL["shards_with_webhooks"],
    "with_actions": _SQL["shards_with_actions"],
}
_OF_TIME: dict[Timed, Statement] = {
    "scheduled": _SQL["shards_scheduled"],
    "ticking": _SQL["shards_ticking"],
}


class Soon(NamedTuple):
    """Shards in which something is due now, and how long until the first of the others."""

    due: list[ShardId]
    seconds: float | None  # None: nothing comes


async def shards_with(
    connection: Connection, work: Work, shards: Sequence[ShardId]
) -> list[ShardId]:
    return list(await fetch_values(connection, _OF_WORK[work], shards=list(shards)))


async def shards_due(connection: Connection, work: Timed, shards: Sequence[ShardId]) -> Soon:
    rows = await fetch(connection, _OF_TIME[work], shards=list(shards))
    due = [shard for shard, is_due, _ in rows if is_due]
    later = [max(seconds, 0.0) for _, is_due, seconds in rows if not is_due]
    return Soon(due, min(later, default=None))
