"""The move of a tenant to another shard, as a decision: what its owner does next.

    draining ── all heard, nothing runs ──▶ moving ── all parts gone ──▶ done
        └────── a minute is over ──▶ called off

While it drains nothing has been moved: it can be called off, and all is as before. Once rows move
there is no way back but on, by whoever owns the shard that it leads away from. No I/O here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import Literal, NamedTuple, TypeAlias

from fairway.core.ids import ShardId, TenantId

MoveState: TypeAlias = Literal["draining", "moving", "done", "called_off"]

DRAIN_SECONDS_MAX = 60.0  # the tenant stands still meanwhile
RUNNING_COUNTED_MAX = 100
SETTLE_SECONDS = 3.0  # after the last server heard of it: what it was writing is on disk by then


class MoveAct(Enum):
    WAIT = "wait"
    CALL_OFF = "call_off"
    BEGIN = "begin"
    MOVE_ROWS = "move_rows"
    SWITCH = "switch"


class MoveSight(NamedTuple):
    """A move, for people."""

    id: int
    tenant: TenantId
    name: str
    from_shard: ShardId
    to_shard: ShardId
    state: MoveState
    asked_at: datetime
    finished_at: datetime | None
    rows_moved: int
    note: str


class MoveLook(NamedTuple):
    """How far a move is, as the store says."""

    id: int
    tenant: TenantId
    from_shard: ShardId
    to_shard: ShardId
    state: MoveState
    asked_seconds: float  # ago
    unheard: Sequence[str]  # servers that may take or start something of the tenant yet
    heard_seconds: float  # since the last of the others heard
    running: int  # of its jobs
    has_bulk_actions: bool
    has_owed_flows: bool
    has_usage: bool  # that is not booked yet

    @property
    def waits_for(self) -> str:
        """A sentence; empty: for nothing."""
        if self.unheard:
            named = ", ".join(self.unheard[:5])
            return f"Servers that have not heard of it, or are of an older build: {named}."
        if self.running:
            return "Jobs of the tenant run."
        if self.has_bulk_actions:
            return "An act on many of its jobs is under way."
        if self.has_owed_flows:
            return "A row of its flows is being given up."
        if self.has_usage:
            return "What its last runs used is not booked yet."
        return ""


def next_act(look: MoveLook, running_here: int, parts_left: bool) -> MoveAct:
    """`running_here` counts runs that the store need not know of; `parts_left`: of large tables."""
    if look.state == "moving":
        return MoveAct.MOVE_ROWS if parts_left else MoveAct.SWITCH
    if look.state != "draining":
        return MoveAct.WAIT
    if look.asked_seconds > DRAIN_SECONDS_MAX:
        return MoveAct.CALL_OFF
    is_ready = not look.waits_for and not running_here and look.heard_seconds >= SETTLE_SECONDS
    return MoveAct.BEGIN if is_ready else MoveAct.WAIT


def why_called_off(look: MoveLook, running_here: int) -> str:
    """A sentence for people: what it waited for, and what they can do."""
    running = look.running or running_here
    if not look.unheard and running:
        more = " or more" if running >= RUNNING_COUNTED_MAX else ""
        runs = f"Jobs of the tenant ran on: {running}{more}."
        return f"{runs} Ask again when they have ended, or cancel them first."
    return look.waits_for or "It could not be begun in time."
