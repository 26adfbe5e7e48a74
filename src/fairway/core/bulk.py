"""An act on many jobs at once: which jobs, what is done to them, and how far it has come.

One concept for all of them: written down, worked off in bounded steps by the owner of the shard,
shown with its progress, and abortable.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from fairway.core.failure.dead_letter import DeadFilter
from fairway.core.ids import PoolId, TenantId, TypeId
from fairway.core.job import JobFilter
from fairway.core.lifecycle import LIVE, State

#: cancel: jobs that have not ended; replay and discard: dead letters.
BulkAct: TypeAlias = Literal["cancel", "replay", "discard"]

HELD_UP_TRIES_MAX = 20
HELD_UP_SECONDS_MAX = 600.0

NOWHERE = "00000000-0000-0000-0000-000000000000"  # before every id


class BulkFilter(NamedTuple):
    """Which jobs; ids are bounds in time (`since` ≤ id < `before`). None does not narrow."""

    before: str
    since: str
    states: list[int] | None = None
    type: TypeId | None = None
    pool: PoolId | None = None
    tag: str | None = None
    fingerprint: int | None = None

    @property
    def dead(self) -> DeadFilter:
        """The same of dead letters."""
        bounds = self.before, self.since
        return DeadFilter(*bounds, self.type, self.pool, self.fingerprint, self.tag)

    def live(self, limit: int, before: str | None = None) -> JobFilter:
        """The same of jobs that have not ended, older than this one."""
        states = [state.value for state in LIVE] if self.states is None else self.states
        last = self.before if before is None else min(before, self.before)
        return JobFilter(last, self.since, states, self.type, self.pool, limit, self.tag)


class BulkAction(NamedTuple):
    """An act on many, and how far it has come."""

    id: str
    tenant: TenantId
    act: BulkAct
    state: str  # running | done | aborted | failed
    states: list[int] | None
    type: TypeId | None
    pool: PoolId | None
    tag: str | None
    fingerprint: int | None
    since: str
    before: str
    payload: bytes | None
    per_second: int
    matched: int
    done: int
    asked_to_stop: int  # of a cancel: they ran
    skipped: int  # ended, or came back, by themselves before their turn
    failed: int  # that the store refused to change
    cursor: str
    created_at: datetime
    finished_at: datetime | None
    error: str | None  # the store's last reason

    @property
    def wanted(self) -> BulkFilter:
        narrow = self.states, self.type, self.pool, self.tag, self.fingerprint
        return BulkFilter(self.before, self.since, *narrow)


def as_one(parts: Sequence[BulkAction]) -> BulkAction:
    """The same action in all parts of a tenant in several shards. It runs while one of them does;
    what went wrong in one is told."""
    states = {one.state for one in parts}
    first = parts[0]
    ended = [one.finished_at for one in parts if one.finished_at is not None]
    return first._replace(
        state=next(one for one in _WORST_FIRST if one in states),
        **{name: sum(getattr(one, name) for one in parts) for name in _ADDED_UP},
        created_at=min(one.created_at for one in parts),
        finished_at=max(ended) if len(ended) == len(parts) else None,
        error=next((one.error for one in parts if one.error is not None), None),
    )


_WORST_FIRST = ("running", "failed", "aborted", "done")
_ADDED_UP = ("per_second", "matched", "done", "asked_to_stop", "skipped", "failed")


def first_cursor(act: BulkAct, wanted: BulkFilter) -> str:
    """Where it begins: what waits longest runs next, so the newest is cancelled first; the dead
    come back as they came."""
    return wanted.before if act == "cancel" else NOWHERE


def is_meant(act: BulkAct, states: list[int] | None) -> bool:
    """Whether an act can be done to jobs in these states."""
    possible = {state.value for state in LIVE} if act == "cancel" else {State.DEAD.value}
    return states is None or set(states) <= possible


def is_hopeless(tries: int, seconds: float) -> bool:
    """Whether an action that got nowhere so often, for so long, is given up. Both: a store that is
    slow for a minute fails many tries, one that is asked seldom takes long to say no."""
    return tries >= HELD_UP_TRIES_MAX and seconds >= HELD_UP_SECONDS_MAX
