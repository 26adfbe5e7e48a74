"""The move of a tenant to another shard, as a decision: what its owner does next.

    draining ── all heard, nothing runs ──▶ moving ── all parts gone ──▶ done
        │                                      └── cancelled ──▶ returning ── all back ──┐
        └────── its time is over, or cancelled ───────────────────────────▶ called off ◀─┘

While it drains nothing has been moved: it can be called off, and all is as before. Once rows move,
whoever owns the shard that it leads away from goes on, or moves them back if an operator wants it.
No I/O here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import Literal, NamedTuple, TypeAlias

from fairway.core.ids import ShardId, TenantId

MoveState: TypeAlias = Literal["draining", "moving", "returning", "done", "called_off"]

WAIT_SECONDS = 60  # for runs to end, unless somebody says another time: the tenant stands still
WAIT_SECONDS_MAX = 86_400
RUNNING_COUNTED_MAX = 100
RUNNING_NAMED_MAX = 3
SETTLE_SECONDS = 3.0  # after the last server heard of it: what it was writing is on disk by then


class MoveAct(Enum):
    WAIT = "wait"
    CALL_OFF = "call_off"
    END_CONNECTIONS = "end_connections"  # of servers that stand still and have not heard
    BEGIN = "begin"
    MOVE_ROWS = "move_rows"
    SWITCH = "switch"
    TURN_BACK = "turn_back"
    FINISH_RETURN = "finish_return"


class MoveSight(NamedTuple):
    """A move, for people."""

    id: int
    tenant: TenantId
    name: str
    from_shard: ShardId
    to_shard: ShardId
    state: MoveState
    asked_at: datetime
    wait_seconds: int
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
    wait_seconds: int  # for its runs to end
    cancelled_by: str | None  # an operator
    unheard: Sequence[str]  # servers that may take or start something of the tenant yet
    heard_seconds: float  # since the last of the others heard
    unheard_connections: int  # of processes that are gone from the list of servers, or not on it
    tenants_there: int  # in the shard that it leads to: none, unless one was made meanwhile
    running: Sequence[str]  # of its jobs; some
    has_bulk_actions: bool
    has_owed_flows: bool
    has_usage: bool  # that is not booked yet
    has_unstated_month: bool  # in the shard that it leaves, not in the other

    @property
    def waits_for(self) -> str:
        """A sentence; empty: for nothing."""
        if self.unheard:
            named = ", ".join(self.unheard[:5])
            return f"Servers that have not heard of it, or are of an older build: {named}."
        if self.running:
            return f"Jobs of the tenant run: {_named(self.running)}."
        if self.has_bulk_actions:
            return "An act on many of its jobs is under way."
        if self.has_owed_flows:
            return "A row of its flows is being given up."
        if self.has_usage:
            return (
                "What its last runs used is not booked yet. As a rule that is over in seconds; if"
                " not, the log says what of it cannot be booked, and why."
            )
        if self.has_unstated_month:
            return why_it_is_unstated(self.from_shard, self.to_shard)
        return ""


def next_act(look: MoveLook, running_here: int, parts_left: bool) -> MoveAct:
    """`running_here` counts runs that the store need not know of; `parts_left`: of large tables."""
    if look.state == "moving" and look.cancelled_by is not None:
        return MoveAct.TURN_BACK
    if look.state in ("moving", "returning"):
        last = MoveAct.SWITCH if look.state == "moving" else MoveAct.FINISH_RETURN
        return MoveAct.MOVE_ROWS if parts_left else last
    if look.state != "draining":
        return MoveAct.WAIT
    is_late = look.asked_seconds > look.wait_seconds
    if is_late or look.cancelled_by is not None or look.tenants_there:
        return MoveAct.CALL_OFF
    if look.waits_for or running_here or look.heard_seconds < SETTLE_SECONDS:
        return MoveAct.WAIT
    return MoveAct.END_CONNECTIONS if look.unheard_connections else MoveAct.BEGIN


def why_called_off(look: MoveLook, running_here: int) -> str:
    """A sentence for people: what it waited for, and what they can do."""
    if look.cancelled_by is not None:
        return why_ended_at_once(look.cancelled_by)
    if look.tenants_there:
        return f"A tenant was made in shard {look.to_shard} meanwhile: it is not empty any more."
    if not look.unheard and (look.running or running_here):
        runs = _named(look.running) if look.running else f"{running_here}"
        return (
            f"Jobs of the tenant ran on after {look.wait_seconds} s: {runs}. Ask again with a"
            " longer --wait, when they have ended, or cancel them first."
        )
    return look.waits_for or "It could not be begun in time."


def why_ended_at_once(cancelled_by: str) -> str:
    """A sentence for people, of a move that had not begun."""
    return f"Cancelled with the key {cancelled_by!r}. All is as it was before."


def why_it_is_unstated(from_shard: ShardId, to_shard: ShardId) -> str:
    """Sentences for people: a statement that is not kept stops this, and they can mend it."""
    return (
        f"Shard {to_shard} has written the statements of a month that shard {from_shard} has not:"
        " a tenant that moves now would have none. As a rule that is over in a minute; if not, the"
        " log says which statement is not kept, and why."
    )


def why_it_returns(cancelled_by: str) -> str:
    """A sentence for people, until all is back."""
    return f"Cancelled with the key {cancelled_by!r}: what was moved goes back."


def why_it_failed(error: Exception) -> str:
    """A sentence for people: it is tried again, and they may end it."""
    said = str(error).splitlines()[0][:200] if str(error) else ""
    return (
        f"A step failed and is tried again ({type(error).__name__}: {said}). If it stays so:"
        " fairway shards move --cancel."
    )


def _named(running: Sequence[str]) -> str:
    """How many, and which, for instance."""
    more = " or more" if len(running) >= RUNNING_COUNTED_MAX else ""
    return f"{len(running)}{more} ({', '.join(sorted(running)[:RUNNING_NAMED_MAX])})"
