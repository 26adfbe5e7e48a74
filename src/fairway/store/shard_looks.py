"""Which of many shards a loop has something to do in: one statement instead of one for each.

Says nothing of what there is: whoever hears of a shard looks at it with its own statements, under
its term. A shard that is not named has nothing, or has had nothing a moment ago. Loops that look at
the same time have one statement with all looks instead of one each (`look_at_all`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from fairway.core.ids import ShardId
from fairway.store.connections.database import Connection, Record, fetch, fetch_values
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
    "with_checkpoints",
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
    "with_checkpoints": _SQL["shards_with_checkpoints"],
}
_OF_TIME: dict[Timed, Statement] = {
    "scheduled": _SQL["shards_scheduled"],
    "ticking": _SQL["shards_ticking"],
}


#: All of these in one, each row with what it is about.
ALL_LOOKS = Statement(
    "all_looks",
    "\nUNION ALL\n".join(
        [
            f"SELECT '{work}' AS work, shard, true AS is_due, NULL::float8 AS seconds"
            f" FROM ({one.text}) AS {work}"
            for work, one in _OF_WORK.items()
        ]
        + [
            f"SELECT '{work}' AS work, shard, is_due, seconds FROM ({one.text}) AS {work}"
            for work, one in _OF_TIME.items()
        ]
    ),
    ("shards",),
)


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
    return _soon(rows)


class AllLooks(NamedTuple):
    """What there is of everything, in some shards."""

    rows: list[Record]

    def shards_with(self, work: Work, shards: Collection[ShardId]) -> list[ShardId]:
        return [shard for _, shard, *_ in self._of(work, shards)]

    def shards_due(self, work: Timed, shards: Collection[ShardId]) -> Soon:
        return _soon(row[1:] for row in self._of(work, shards))

    def _of(self, work: Work | Timed, shards: Collection[ShardId]) -> list[tuple[Any, ...]]:
        among = set(shards)
        return [tuple(row) for row in self.rows if row[0] == work and row[1] in among]


async def look_at_all(connection: Connection, shards: Collection[ShardId]) -> AllLooks:
    return AllLooks(await fetch(connection, ALL_LOOKS, shards=list(shards)))


def _soon(rows: Iterable[Sequence[Any]]) -> Soon:
    found = list(rows)
    due = [shard for shard, is_due, _ in found if is_due]
    later = [max(seconds, 0.0) for _, is_due, seconds in found if not is_due]
    return Soon(due, min(later, default=None))
