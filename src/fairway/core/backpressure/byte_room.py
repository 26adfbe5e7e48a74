"""Room for what waits, counted in bytes: so much in all, and a part of that for each owner.

Who finds no room is told so at once and keeps what it has; nothing is queued here. One thing that
is larger than an owner's part is let in when that owner has nothing else inside, or it could never
pass.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple


class _Reservation(NamedTuple):
    owner: Hashable
    size_bytes: int


class ByteRoom:
    def __init__(self, bytes_max: int, bytes_each_max: int) -> None:
        self.bytes_max = bytes_max
        self.bytes_each_max = bytes_each_max
        self.bytes_held = 0
        self._reservations: dict[Hashable, _Reservation] = {}
        self._by_owner: dict[Hashable, int] = {}  # nobody who holds nothing is in here

    def held_by(self, owner: Hashable) -> int:
        return self._by_owner.get(owner, 0)

    def fits(self, owner: Hashable, size_bytes: int) -> bool:
        """Whether so much more of this owner's may come in now."""
        return self.fits_part(owner, size_bytes) and self.fits_all(size_bytes, self.bytes_max)

    def fits_part(self, owner: Hashable, size_bytes: int) -> bool:
        """Whether the owner's own part has room for so much more."""
        held = self._by_owner.get(owner, 0)
        return not held or held + size_bytes <= self.bytes_each_max

    def fits_all(self, size_bytes: int, bytes_max: int) -> bool:
        """Whether what all hold would stay within this bound."""
        return not self.bytes_held or self.bytes_held + size_bytes <= bytes_max

    def take(self, key: Hashable, owner: Hashable, size_bytes: int) -> bool:
        """Let it in if it fits; True also for what is inside already."""
        if key in self._reservations:
            return True
        if not self.fits(owner, size_bytes):
            return False
        self._reservations[key] = _Reservation(owner, size_bytes)
        self._count(owner, size_bytes)
        return True

    def give_back(self, key: Hashable) -> None:
        """It is gone; what never came in is no matter."""
        reservation = self._reservations.pop(key, None)
        if reservation is not None:
            self._count(reservation.owner, -reservation.size_bytes)

    def shrink(self, key: Hashable, size_bytes: int) -> None:
        """It turned out to be smaller than was thought."""
        reservation = self._reservations.get(key)
        if reservation is not None and size_bytes < reservation.size_bytes:
            self._reservations[key] = _Reservation(reservation.owner, size_bytes)
            self._count(reservation.owner, size_bytes - reservation.size_bytes)

    def _count(self, owner: Hashable, more_bytes: int) -> None:
        self.bytes_held += more_bytes
        held = self._by_owner.get(owner, 0) + more_bytes
        if held:
            self._by_owner[owner] = held
        else:  # also when places of no bytes are left: they weigh nothing
            self._by_owner.pop(owner, None)
