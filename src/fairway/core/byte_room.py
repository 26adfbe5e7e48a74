"""Room for what waits, counted in bytes: so much in all, and a part of that for each owner.

Who finds no room is told so at once and keeps what it has; nothing is queued here. One thing that
is larger than an owner's part is let in when that owner has nothing else inside, or it could never
pass.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple


class _Place(NamedTuple):
    owner: int
    size_bytes: int


class ByteRoom:
    def __init__(self, bytes_max: int, bytes_each_max: int) -> None:
        self.bytes_max = bytes_max
        self.bytes_each_max = bytes_each_max
        self.bytes_held = 0
        self._places: dict[Hashable, _Place] = {}
        self._by_owner: dict[int, int] = {}

    def fits(self, owner: int, size_bytes: int) -> bool:
        """Whether so much more of this owner's may come in now."""
        held = self._by_owner.get(owner, 0)
        if held and held + size_bytes > self.bytes_each_max:
            return False
        return not self.bytes_held or self.bytes_held + size_bytes <= self.bytes_max

    def take(self, key: Hashable, owner: int, size_bytes: int) -> bool:
        """Let it in if it fits; True also for what is inside already."""
        if key in self._places:
            return True
        if not self.fits(owner, size_bytes):
            return False
        self._places[key] = _Place(owner, size_bytes)
        self.bytes_held += size_bytes
        self._by_owner[owner] = self._by_owner.get(owner, 0) + size_bytes
        return True

    def give_back(self, key: Hashable) -> None:
        """It is gone; what never came in is no matter."""
        place = self._places.pop(key, None)
        if place is None:
            return
        self.bytes_held -= place.size_bytes
        self._by_owner[place.owner] -= place.size_bytes
        if not self._by_owner[place.owner]:
            del self._by_owner[place.owner]
