"""Errors of the store that pass: what is tried again here, and what the caller hears.

A transaction that the store says it undid (a deadlock, a lock, a time-out) is tried again, if it
begins anew each time: nothing of an undone try is left, so nothing is doubled.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TypeVar

from fairway.core.backoff import backoff_seconds
from fairway.core.errors import FairwayError, Unavailable
from fairway.runtime.loops import pause
from fairway.store.connections.database import DISCONNECTED, ROLLED_BACK, UNDONE, Database

T = TypeVar("T")

NO_DATABASE = (
    "The database of this service does not answer, so it cannot do this right now; try again"
    " shortly. Operators: `fairway doctor`, and the server's log for why."
)
TRIES_MAX = 6
PAUSE_FIRST_SECONDS = 0.02


def refusal_of(error: BaseException) -> Unavailable:
    """What somebody hears whose writing failed: is it known that nothing was kept?"""
    if not isinstance(error, UNDONE):
        return not_known()
    return Unavailable(
        "The store cannot take this right now, and nothing of it was kept; try again shortly."
    )


def not_known() -> Unavailable:
    return Unavailable(
        "The store did not answer in time, so it is not known whether this was accepted. If it had"
        " an Idempotency-Key, send it again with that one, and it is accepted once; if it had none,"
        " look first whether it is there."
    )


def told_where_known(error: FairwayError, database: Database) -> FairwayError:
    """The same; that something cannot be done now, with why, where the watch of the store knows."""
    bare = Unavailable()
    is_bare = (error.code, error.message) == (bare.code, bare.message)
    return Unavailable(NO_DATABASE) if is_bare and database.hosts.is_unreachable else error


def may_pass(error: Exception) -> bool:
    """Whether this is the store's present state and no fault of the request's or of ours."""
    return isinstance(error, DISCONNECTED)


class ToldIfAway:
    """`with` or `async with`: whoever asked hears that the store is away, in our words.

    The one translation of that. It goes before the use of a connection, so that it hears how the
    use ended. A class, because workers' calls pass it: a generator takes several times as long.
    """

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, DISCONNECTED):
            raise Unavailable() from error

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)


told_if_away = ToldIfAway()


async def again(work: Callable[[float], Awaitable[T]], seconds: float) -> T:
    """`work` hears how many seconds are left of these; its last error is raised as it came."""
    loop = asyncio.get_running_loop()
    ends_at, tries = loop.time() + seconds, 0
    while True:
        tries += 1
        try:
            return await work(ends_at - loop.time())
        except ROLLED_BACK:
            rest = random.uniform(0.5, 1.5) * backoff_seconds(PAUSE_FIRST_SECONDS, tries, seconds)
            if tries >= TRIES_MAX or loop.time() + 2 * rest >= ends_at:
                raise
            await pause(rest)
