"""Places for what takes a while: so many in all, so few for each owner that none takes them all.

Whoever finds its own places taken waits behind itself alone. A wait has an end: then the caller is
told to come back. Only who waits for what another does for it, too, may wait without one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import AsyncExitStack, asynccontextmanager

from fairway.core.errors import Unavailable

WAIT_SECONDS_MAX = 30.0


class OwnerSlots:
    def __init__(
        self,
        what: str,
        *,
        per_owner: int,
        in_all: int,
        wait_seconds: float | None = WAIT_SECONDS_MAX,  # None: as long as it takes
    ) -> None:
        self._what = what  # of which there are too many, for those who waited in vain
        self._per_owner = per_owner
        self._in_all = asyncio.Semaphore(in_all)
        self._wait_seconds = wait_seconds
        self._owners: dict[Hashable, _Owner] = {}

    @asynccontextmanager
    async def held(
        self, owner: Hashable, *, is_small: bool = False, wait_seconds: float | None = None
    ) -> AsyncIterator[None]:
        """A place of the owner's, and one of all unless what is carried is small."""
        wait_seconds = self._wait_seconds if wait_seconds is None else wait_seconds
        found = self._owners.get(owner)
        if found is None:
            found = self._owners[owner] = _Owner(self._per_owner)
        found.users += 1
        try:
            async with AsyncExitStack() as stack:
                await self._take(stack, found, is_small, wait_seconds)
                yield
        finally:
            found.users -= 1
            if not found.users:
                del self._owners[owner]

    async def _take(
        self, stack: AsyncExitStack, owner: _Owner, is_small: bool, wait_seconds: float | None
    ) -> None:
        try:
            async with asyncio.timeout(wait_seconds):
                await stack.enter_async_context(owner.slots)
                if not is_small:
                    await stack.enter_async_context(self._in_all)
        except TimeoutError:
            raise Unavailable(
                f"Too many {self._what}; try again shortly.", code="OVERLOADED"
            ) from None


class _Owner:
    """The places of one, while anybody uses them or waits for them."""

    def __init__(self, slots: int) -> None:
        self.slots = asyncio.Semaphore(slots)
        self.users = 0
