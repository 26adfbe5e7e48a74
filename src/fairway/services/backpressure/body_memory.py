"""Room for the bodies of requests: read, decoded and worked on, bounded in bytes.

A body takes room for as many bytes as it says it has before any of them is read, and gives it back
when its request is over, or sooner when nothing of it is held any more. One that does not say how
long it is counts as the longest that its path takes, until it is known. Small ones are not counted:
there are as many of them as there are connections, at most, and no large one may keep them out.

Workers have room of their own, so that no customer's upload holds up a report; tenants' own
workers and shared ones each theirs. Within a room an owner has a fourth. Who has something inside
fills it to one half only, large bodies to three fourths: the rest is for who comes with little.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias

from fairway.core.backpressure.byte_room import ByteRoom
from fairway.core.errors import FairwayError, LimitReached, Unavailable
from fairway.core.ids import TenantId
from fairway.runtime.telemetry import Metrics

SMALL_BYTES = 64 << 10  # not counted
LIGHT_BYTES = 1 << 20  # finds room when larger ones do not any more
CALL_BYTES_MAX = 24 << 20  # of one exchange: a report with the largest result, or many small
OWNERS_PART = 4  # of a room: a fourth
CHECKPOINTS_BYTES_MAX = 32 << 20  # of those that need no place among the large ones
RETRY_SECONDS = 2


class BodyRoom:
    def __init__(self, kind: str, bytes_max: int, metrics: Metrics) -> None:
        self._room = ByteRoom(bytes_max, bytes_max // OWNERS_PART)
        self._kind = kind
        self._refused = metrics.bodies_refused
        metrics.body_bytes.labels(kind).set_function(lambda: self._room.bytes_held)

    @property
    def bytes_held(self) -> int:
        return self._room.bytes_held

    def take(self, owner: Hashable, size_bytes: int) -> BodyReservation:
        """Raises what tells the caller to come back."""
        room, reservation = self._room, BodyReservation(self._room)
        if not room.fits_part(owner, size_bytes):
            self._refused.labels(self._kind, "own part").inc()
            raise self._own_part_full(room.held_by(owner))
        if not room.fits_all(size_bytes, self._bound(owner, size_bytes)):
            self._refused.labels(self._kind, "all").inc()
            raise no_room(
                "This server holds as many bytes of large bodies as it has room for. Nothing of"
                " yours was read; send it again in a moment."
            )
        room.take(reservation, owner, size_bytes)
        return reservation

    def _bound(self, owner: Hashable, size_bytes: int) -> int:
        """How much of the room may be full once this is inside."""
        bytes_max = self._room.bytes_max
        if self._room.held_by(owner):
            return bytes_max // 2
        return bytes_max if size_bytes <= LIGHT_BYTES else bytes_max * 3 // 4

    def _own_part_full(self, held_bytes: int) -> FairwayError:
        return LimitReached(
            f"{held_bytes} bytes of your large bodies are under way already, and you may have"
            f" {self._room.bytes_each_max} at a time. Nothing of this one was read; send it when"
            " some have been answered.",
            code="TOO_MANY_BYTES",
            retry_after_seconds=RETRY_SECONDS,
        )


class WorkerRoom(BodyRoom):
    """As any other; but a worker is never told that it asks too much, only to come again."""

    def _own_part_full(self, held_bytes: int) -> FairwayError:
        return no_room(
            f"{held_bytes} bytes of calls of this worker, or of its tenant's workers, are under way"
            " already. Nothing of this one was read; send it again in a moment."
        )


class BodyReservation:
    """The room that one body has."""

    __slots__ = ("_room",)

    def __init__(self, room: ByteRoom) -> None:
        self._room = room

    def shrink(self, size_bytes: int) -> None:
        self._room.shrink(self, size_bytes)

    def give_back(self) -> None:
        self._room.give_back(self)


Counted: TypeAlias = tuple[BodyRoom, Hashable]  # where a body counts, and to whom


class BodyRooms:
    """All room that a server has for bodies: half for requests, a fourth for either workers."""

    def __init__(self, bytes_max: int, metrics: Metrics) -> None:
        self.requests = BodyRoom("requests", bytes_max // 2, metrics)
        self.checkpoints = WorkerRoom("checkpoints", CHECKPOINTS_BYTES_MAX, metrics)
        self._own = WorkerRoom("tenants_workers", bytes_max // 4, metrics)
        self._shared = WorkerRoom("shared_workers", bytes_max // 4, metrics)

    def of_worker(self, tenant: TenantId | None, worker: str) -> Counted:
        """A tenant's workers count together: it may start as many as it likes."""
        return (self._shared, worker) if tenant is None else (self._own, tenant)


def no_room(sentence: str) -> Unavailable:
    error = Unavailable(sentence, code="NO_ROOM")
    error.retry_after_seconds = RETRY_SECONDS
    return error
