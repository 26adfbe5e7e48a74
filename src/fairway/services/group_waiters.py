"""People who wait for a share of a group's work: each is answered within a time, whatever happens.

Work in groups has a deadline of its own, but whoever came while a stuck group was under way waits
for two. A timer for each of them would cost the hot path more than the list that is looked through
here a few times a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

LOOKS = 8  # within the time that a waiter has
CROWD = 256  # from so many on, those that are done are let go early: what is used again is warm


class GroupWaiters:
    def __init__(self, seconds: float, refusal: Callable[[], Exception]) -> None:
        self._look_seconds = seconds / LOOKS
        self._refusal = refusal  # what those hear whose time is over
        self._fresh: list[asyncio.Future[Any]] = []
        self._crowd = CROWD
        self._older: list[list[asyncio.Future[Any]]] = []  # what each look left, oldest first
        self._timer: asyncio.TimerHandle | None = None

    def add(self, waiter: asyncio.Future[Any]) -> None:
        fresh = self._fresh
        fresh.append(waiter)
        if self._timer is None:
            self._set_timer()
        elif len(fresh) >= self._crowd:
            self._fresh = [one for one in fresh if not one.done()]
            self._crowd = CROWD + 2 * len(self._fresh)  # so that a look costs each of them little

    def _set_timer(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._look_seconds, self._look)

    def _look(self) -> None:
        self._older.append(self._fresh)
        self._fresh, self._crowd = [], CROWD
        self._older = [[one for one in group if not one.done()] for group in self._older]
        # One look is kept back: those of a group came up to a look before it was closed.
        over = self._older.pop(0) if len(self._older) >= LOOKS - 1 else []
        for waiter in over:
            waiter.set_exception(self._refusal())
        if any(self._older):
            self._set_timer()
        else:
            self._older, self._timer = [], None
