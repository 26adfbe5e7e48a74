"""Leases that nobody runs any more, given up in parts: a worker may have held very many."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairway.runtime.loops import WorkInParts
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.dispatch.run_ends import SILENT
from fairway.services.sessions.sessions import Lease

LOST_AT_ONCE = 50  # some two milliseconds


async def lose_in_parts(
    dispatcher: Dispatcher,
    leases: Sequence[Lease],
    error: bytes = SILENT,
    is_still_so: Callable[[], bool] = lambda: True,
) -> list[Lease]:
    """Give up those that still stand, for as long as it is so; answers which it was."""
    work, lost = WorkInParts(), list[Lease]()
    for start in range(0, len(leases), LOST_AT_ONCE):
        if start:
            await work.let_others()
        if not is_still_so():
            break
        some = leases[start : start + LOST_AT_ONCE]
        standing = [one for one in some if dispatcher.stands(one)]
        dispatcher.lost(standing, error)
        lost += standing
    return lost
