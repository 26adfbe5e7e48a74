"""What goes on under a key or a session, and is cut short in the middle when that ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

Name = TypeVar("Name", bound=Hashable)


class CutShort(Exception):
    """It went on under something that has ended."""


class GoingOn(Generic[Name]):
    def __init__(self) -> None:
        self._held: dict[Name, set[asyncio.Timeout]] = {}

    def names(self) -> Collection[Name]:
        """Under which something goes on."""
        return self._held.keys()

    @asynccontextmanager
    async def under(self, name: Name) -> AsyncIterator[None]:
        """Raises CutShort out of the middle of it."""
        try:
            async with asyncio.timeout(None) as until:
                waits = self._held.setdefault(name, set())
                waits.add(until)
                try:
                    yield
                finally:
                    waits.discard(until)
                    if not waits and self._held.get(name) is waits:
                        del self._held[name]
        except TimeoutError:
            if until.expired():
                raise CutShort from None
            raise

    def cut_short(self, name: Name) -> None:
        for until in self._held.pop(name, ()):
            until.reschedule(0)  # in the past: it is over with the next turn of the loop
