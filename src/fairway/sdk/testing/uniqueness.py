"""Unique jobs in memory: refused, led to the one that is there, or in its place, as on a server."""

from __future__ import annotations

from typing import NamedTuple

from fairway.core.errors import Conflict
from fairway.core.lifecycle import State
from fairway.sdk.testing.record import Enqueued
from fairway.wire.unique import WHILE_LIVE, UniqueRequest


class Name(NamedTuple):
    """Who holds a key, and since when the first of those waits that it stands for."""

    record: Enqueued
    wanted: UniqueRequest
    since: float


class UniqueNames:
    def __init__(self) -> None:
        self._names: dict[str, Name] = {}

    def holder(self, wanted: UniqueRequest | None, now: float) -> Enqueued | None:
        """The job that is there already, in place of one that asks for this; None: make it.

        Conflict when it is not to be made at all. One that is to be replaced is cancelled.
        """
        name = None if wanted is None else self._names.get(wanted.key)
        if wanted is None or name is None or not _counts(name, now):
            return None
        there = name.record
        if wanted.on_conflict == "return":
            return there
        if wanted.on_conflict == "reject" or there.state is State.RUNNING or there.state.is_final:
            raise Conflict(
                f"{there.type} {there.id} is the same by its unique key, and still counts",
                code="NOT_UNIQUE",
                field="/unique",
            )
        if there.flows:
            raise Conflict(
                f"{there.type} {there.id} is the same by its unique key, and cannot be replaced:"
                " other jobs of a flow count on it. Cancel it, or its flow, first",
                code="NOT_UNIQUE",
                field="/unique",
            )
        there.move(State.CANCELLED)
        return None

    def due_at(self, wanted: UniqueRequest | None, due_at: float, now: float) -> float:
        """Not later than this, however often it is put off."""
        if wanted is None or wanted.delay_most_seconds is None:
            return due_at
        return min(due_at, self._since(wanted, now) + wanted.delay_most_seconds)

    def take(self, record: Enqueued, now: float) -> None:
        """It holds its key from now on, if it has one."""
        if (wanted := record.request.unique) is not None:
            self._names[wanted.key] = Name(record, wanted, self._since(wanted, now))

    def _since(self, wanted: UniqueRequest, now: float) -> float:
        """A series goes on as long as each of its jobs is replaced before it ran."""
        name = self._names.get(wanted.key)
        goes_on = name and name.record.state is State.CANCELLED and not name.record.deliveries
        return name.since if name and goes_on and wanted.on_conflict == "replace" else now


def _counts(name: Name, now: float) -> bool:
    record, wanted = name.record, name.wanted
    is_due = record.state is State.SCHEDULED and record.due_at <= now
    state = State.QUEUED if is_due else record.state
    states = WHILE_LIVE if wanted.while_states is None else wanted.while_states
    return now < record.created_at + wanted.within_seconds and state.label in states
