"""A move as a machine: whatever comes in between, nothing is in two places when it is over."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.ids import ShardId, TenantId
from fairway.core.ownership.tenant_move import (
    SETTLE_SECONDS,
    WAIT_SECONDS,
    MoveAct,
    MoveLook,
    next_act,
    why_called_off,
)

OLD, NEW = ShardId(1), ShardId(2)
ROWS_AT_ONCE = 3


def a_look(**differs: Any) -> MoveLook:
    """One that is ready, but for what differs."""
    usual = MoveLook(
        id=1,
        tenant=TenantId(7),
        from_shard=OLD,
        to_shard=NEW,
        state="draining",
        asked_seconds=5.0,
        wait_seconds=WAIT_SECONDS,
        cancelled_by=None,
        unheard=(),
        heard_seconds=SETTLE_SECONDS,
        unheard_connections=0,
        tenants_there=0,
        running=(),
        has_bulk_actions=False,
        has_owed_flows=False,
        has_usage=False,
        has_unstated_month=False,
    )
    return usual._replace(**differs)


BLOCKERS: list[dict[str, Any]] = [
    {"unheard": ("server-2",)},
    {"running": ("job",)},
    {"has_bulk_actions": True},
    {"has_owed_flows": True},
    {"has_usage": True},
    {"has_unstated_month": True},
    {"heard_seconds": SETTLE_SECONDS - 0.1},
]


@given(st.lists(st.sampled_from(BLOCKERS)), st.integers(0, 2), st.booleans())
def test_nothing_moves_while_anything_may_still_be_written(
    blockers: list[dict[str, Any]], running_here: int, parts_left: bool
) -> None:
    look = a_look(**{name: value for one in blockers for name, value in one.items()})
    is_ready = not blockers and not running_here
    assert (next_act(look, running_here, parts_left) is MoveAct.BEGIN) == is_ready
    strange = look._replace(unheard_connections=1)  # somebody stands still, and may wake up
    first = MoveAct.END_CONNECTIONS if is_ready else MoveAct.WAIT
    assert next_act(strange, running_here, parts_left) is first
    for off in (
        look._replace(asked_seconds=look.wait_seconds + 1),  # nobody stands still for longer
        look._replace(cancelled_by="ops"),
        look._replace(tenants_there=1),
    ):
        assert next_act(off, running_here, parts_left) is MoveAct.CALL_OFF
        assert why_called_off(off, running_here).endswith(".")
    patient = look._replace(asked_seconds=WAIT_SECONDS + 1, wait_seconds=3600)
    assert next_act(patient, running_here, parts_left) is not MoveAct.CALL_OFF


def test_people_read_which_runs_a_move_waits_for() -> None:
    look = a_look(running=[f"job-{n}" for n in range(100)])
    assert look.waits_for == "Jobs of the tenant run: 100 or more (job-0, job-1, job-10)."
    assert "ran on after 60 s: 100 or more (job-0, job-1, job-10). Ask" in why_called_off(look, 0)


def test_once_rows_are_moved_only_an_operator_turns_back() -> None:
    for more in ({}, *BLOCKERS, {"asked_seconds": 1e6}, {"tenants_there": 1}):
        back = a_look(**more, state="moving", cancelled_by="ops")
        assert next_act(back, 0, parts_left=True) is MoveAct.TURN_BACK
        back = back._replace(state="returning")
        assert next_act(back, 0, parts_left=True) is MoveAct.MOVE_ROWS
        assert next_act(back, 0, parts_left=False) is MoveAct.FINISH_RETURN
        moving = a_look(**more, state="moving")
        assert next_act(moving, 0, parts_left=True) is MoveAct.MOVE_ROWS
        assert next_act(moving, 0, parts_left=False) is MoveAct.SWITCH
        for state in ("done", "called_off"):
            assert next_act(a_look(**more, state=state), 0, parts_left=True) is MoveAct.WAIT


class World:
    """A store with a move in it, and an owner: what that one remembers is lost when it dies."""

    def __init__(self, rows: int, running: int) -> None:
        self.look = a_look(
            unheard=("a",), running=["job"] * running, asked_seconds=0.0, heard_seconds=0.0
        )
        self.rows = rows
        self.old, self.new, self.home = rows, 0, OLD
        self.is_through = False

    def happens(self, event: str) -> None:
        look = self.look
        if event == "hear":
            self.look = look._replace(unheard=())
        elif event == "end a run":
            self.look = look._replace(running=look.running[1:])
        elif event == "start a run" and look.unheard:  # who has heard starts nothing
            self.look = look._replace(running=[*look.running, "job"])
        elif event == "a second":
            heard = 0.0 if look.unheard else look.heard_seconds + 1
            self.look = look._replace(asked_seconds=look.asked_seconds + 1, heard_seconds=heard)
        elif event == "cancel":
            self.look = look._replace(cancelled_by="ops")
        elif event == "die":
            self.is_through = False
        elif event == "act":
            self.act(next_act(look, 0, not self.is_through))

    def act(self, act: MoveAct) -> None:
        if act is MoveAct.BEGIN:
            self.look = self.look._replace(state="moving")
        elif act is MoveAct.CALL_OFF:
            self.look = self.look._replace(state="called_off")
        elif act is MoveAct.TURN_BACK:
            self.look, self.is_through = self.look._replace(state="returning"), False
        elif act is MoveAct.MOVE_ROWS:
            is_back = self.look.state == "returning"
            some = min(ROWS_AT_ONCE, self.new if is_back else self.old)
            self.old += some if is_back else -some
            self.new = self.rows - self.old
            self.is_through = some < ROWS_AT_ONCE
        elif act is MoveAct.FINISH_RETURN:
            self.look = self.look._replace(state="called_off")
            self.old, self.new = self.old + self.new, 0
        elif act is MoveAct.SWITCH:
            self.look = self.look._replace(state="done")
            self.old, self.new, self.home = 0, self.new + self.old, NEW


EVENTS = st.sampled_from(
    ["hear", "end a run", "start a run", "a second", "die", "act", "act", "cancel"]
)


@given(st.integers(0, 30), st.integers(0, 2), st.lists(EVENTS, max_size=60))
def test_all_rows_are_in_one_place_in_the_end_whoever_dies_when(
    rows: int, running: int, events: list[str]
) -> None:
    """Once nobody dies any more it ends: moved, or called off with all as before."""
    world = World(rows, running)
    for event in [*events, "hear", *["a second", "act"] * 90]:
        world.happens(event)
        assert world.old + world.new == rows
        is_as_before = (world.new, world.home) == (0, OLD)
        assert is_as_before or world.look.state in ("moving", "returning", "done")
    assert world.look.state in ("done", "called_off")
    assert (world.new if world.home == NEW else world.old) == rows
