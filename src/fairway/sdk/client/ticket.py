"""One caller's job on its way, and how its caller waits: a thread by a lock, a task by a future.

A ticket is made by its caller and told by the coalescer, in another thread, at most once. A caller
that leaves takes nothing from anybody.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterable

from fairway.core.errors import FairwayError


class Ticket:
    """A job as it is sent, its key, until when its caller waits, and the answer."""

    __slots__ = (
        "_answer",
        "_future",
        "_lock",
        "_loop",
        "_tries",
        "body",
        "ends_at",
        "key",
        "last_error",
        "traceparent",
    )

    def __init__(
        self,
        body: bytes,
        key: str | None,
        ends_at: float,
        loop: asyncio.AbstractEventLoop | None = None,
        traceparent: str | None = None,
    ) -> None:
        """Without a loop it is a thread's. Without a key it is known by that of its call."""
        self.body = body
        self.traceparent = traceparent
        self.key = key
        self.ends_at = ends_at
        self.last_error: FairwayError | None = None  # of a try that may be followed by another
        self._tries = 0
        self._answer: str | FairwayError | None = None
        self._loop = loop
        self._future: asyncio.Future[None] | None = None
        self._lock: threading.Lock | None = None
        if loop is not None:
            self._future = loop.create_future()
        else:
            self._lock = threading.Lock()
            self._lock.acquire()

    # -- the caller's side -------------------------------------------------------------------

    async def answered(self) -> str | FairwayError | None:
        assert self._future is not None
        await self._future
        return self._answer

    def wait(self, seconds: float) -> str | FairwayError | None:
        """None when there is no answer yet."""
        assert self._lock is not None
        try:
            self._lock.acquire(timeout=seconds)
        finally:
            self.leave()
        return self._answer

    def leave(self) -> None:
        """Nobody waits any more: it need not be sent, if it was not."""
        self.ends_at = 0.0

    # -- the coalescer's side ----------------------------------------------------------------

    def own_key(self) -> str:
        """Its caller's, or one that is made when it is first needed and stays."""
        if self.key is None:
            self.key = new_key()
        return self.key

    @property
    def size_bytes(self) -> int:
        return len(self.body) + len(self.key or "")

    @property
    def is_over(self) -> bool:
        """It was told, or its caller has left."""
        if self._answer is not None or not self.ends_at:
            return True
        return self._future is not None and self._future.done()

    def tried(self, error: FairwayError) -> int:
        """Once more, and without an answer; how often by now."""
        self._tries += 1
        self.last_error = error
        return self._tries

    def tell(self, answer: str | FairwayError) -> asyncio.AbstractEventLoop | None:
        """Keep the answer and wake a thread; a task is woken on its loop, which this returns."""
        if self.is_over:
            return None
        self._answer = answer
        if self._lock is not None:
            self._lock.release()
        return self._loop

    def wake(self) -> None:
        """On the task's own loop."""
        if self._future is not None and not self._future.done():
            self._future.set_result(None)


def new_key() -> str:
    return os.urandom(16).hex()


def wake_all(tickets: Iterable[Ticket]) -> None:
    for ticket in tickets:
        ticket.wake()
