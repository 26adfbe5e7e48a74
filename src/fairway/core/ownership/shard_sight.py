"""A shard as operators see it. Facts alone."""

from __future__ import annotations

from typing import NamedTuple

from fairway.core.ids import ShardId, Term

QUEUED_COUNTED_MAX = 1_000  # jobs of a shard; more are not counted


class ShardSight(NamedTuple):
    """A shard, for people."""

    shard: ShardId
    term: Term
    owner: str | None  # the last, whether it still is or not
    has_owner: bool
    is_open: bool
    tenants: int
    queued: int  # jobs; counted up to `QUEUED_COUNTED_MAX`
