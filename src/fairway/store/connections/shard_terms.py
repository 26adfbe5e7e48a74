"""The owner's terms as guards of one statement: rows of several shards, each under its own term.

A statement names the shards that its writer owns, each with its term, and locks those rows of
`shards` in one order; rows of a shard whose term is another's by now are left alone, and the others
are written. Who takes and renews terms is `leadership.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairway.core.ids import ShardId, Term
from fairway.store.connections.database import Connection, fetch_values
from fairway.store.sql import load

_SQL = load("shard_terms.sql")


class ShardsLost(Exception):
    """These are another owner's: nothing of them was written, and that says nothing of a row."""

    def __init__(self, shards: set[ShardId]) -> None:
        super().__init__(f"owned by others: {sorted(shards)}")
        self.shards = shards


def guard(terms: Mapping[ShardId, Term]) -> dict[str, Any]:
    """The terms as a statement's `owned` and `terms`; in one order for all that lock them."""
    owned = sorted(terms)
    return {"owned": owned, "terms": [terms[shard] for shard in owned]}


async def lost_of(connection: Connection, terms: Mapping[ShardId, Term]) -> set[ShardId]:
    """Those of the shards that have another term by now; a term that holds now held before."""
    rows = guard(terms)
    return set(terms) - set(await fetch_values(connection, _SQL["terms_in_force"], **rows))
