"""The states of a job and the one table of legal moves between them.

The numbers are what the store keeps; the SQL CHECKs agree with them by test. Anything that moves
a job asks this table or is written to obey it.
"""

from __future__ import annotations

from enum import IntEnum


class State(IntEnum):
    SCHEDULED = 0  # waits for its time: a delay, or the pause before a retry
    QUEUED = 1  # due, waits for a slot
    RUNNING = 2  # a lease is held (the short pool writes this lazily)
    SUCCEEDED = 3  # final: the handler returned
    DEAD = 4  # final: ended without success after its policy was used up
    CANCELLED = 5  # final: somebody asked for it
    EXPIRED = 6  # final: its `not_after` passed before it could start

    @property
    def label(self) -> str:
        return _LABELS[self]

    @property
    def is_final(self) -> bool:
        return self >= State.SUCCEEDED


_LABELS = {state: state.name.lower() for state in State}
BY_LABEL = {label: state for state, label in _LABELS.items()}

FINAL = frozenset(state for state in State if state.is_final)
LIVE = frozenset(State) - FINAL

#: Every legal move, and the fact that it announces.
TRANSITIONS: dict[tuple[State, State], str] = {
    (State.SCHEDULED, State.QUEUED): "promoted",
    (State.SCHEDULED, State.CANCELLED): "cancelled",
    (State.SCHEDULED, State.EXPIRED): "expired",
    (State.QUEUED, State.RUNNING): "started",
    (State.QUEUED, State.SUCCEEDED): "succeeded",  # `running` was never written: the short pool
    (State.QUEUED, State.SCHEDULED): "retrying",
    (State.QUEUED, State.DEAD): "died",
    (State.QUEUED, State.CANCELLED): "cancelled",
    (State.QUEUED, State.EXPIRED): "expired",
    (State.RUNNING, State.SUCCEEDED): "succeeded",
    (State.RUNNING, State.SCHEDULED): "retrying",
    (State.RUNNING, State.QUEUED): "returned",  # lease lost, drained or snoozed for no time
    (State.RUNNING, State.DEAD): "died",
    (State.RUNNING, State.CANCELLED): "cancelled",
    (State.DEAD, State.QUEUED): "replayed",  # the one way back, and only when somebody asks for it
}


def may_move(before: State, after: State) -> bool:
    return (before, after) in TRANSITIONS
