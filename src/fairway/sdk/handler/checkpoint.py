"""A checkpoint on its way: `await ctx.checkpoint(state)` in a coroutine, a plain call elsewhere.

The saving begins with the call. A coroutine awaits it to know that the state is safe; in a thread
or a process of its own the call itself returns when it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from concurrent.futures import Future
from typing import Any

from fairway.sdk.handler.outcomes import DependencyFailed, Fail


class CheckpointFailed(DependencyFailed):
    """The checkpoint could not be saved; the one before it still stands.

    Left alone, it ends the run as a failed dependency does: the job is tried again soon.
    """

    def __init__(self, message: str) -> None:
        super().__init__("object storage", message)


class CheckpointRefused(Fail):
    """The state cannot be saved as it is, and will never be.

    Left alone, it ends the job: every other run would come to the same state.
    """


class Saving:
    """A checkpoint that is being saved.

    Awaiting it raises CheckpointFailed when that cannot be done, CheckpointRefused when it never
    can.
    """

    def __init__(self, saved: Future[None]) -> None:
        self._saved = saved

    def __await__(self) -> Generator[Any, None, None]:
        return asyncio.wrap_future(self._saved).__await__()

    @property
    def is_safe(self) -> bool:
        return self._saved.done() and self._saved.exception() is None


def saving(saved: Future[None]) -> Saving:
    """Waits right here, unless an event loop runs here that must not be held up."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        saved.result()
    return Saving(saved)


def already_saved() -> Future[None]:
    done: Future[None] = Future()
    done.set_result(None)
    return done
