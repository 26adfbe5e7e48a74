"""Results too large for a row, on their way to object storage: bounded in bytes, also per tenant.

While storage is away they wait here; when there is no more room, a report is not taken: its lease
stands, its worker keeps the bytes and its slot is free for others. As soon as there is room the
worker is asked to say all again that it has not heard of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from fairway.core.byte_room import ByteRoom
from fairway.core.errors import Unavailable
from fairway.runtime.loops import pause
from fairway.runtime.telemetry import logger
from fairway.services.sessions import End, Lease, Session

log = logger("large_results")

RETRY_SECONDS = 0.2
RETRY_SECONDS_MAX = 2.0
TRIES_MAX = 3  # of a result that storage does not take, though it is there
INVITE_SECONDS = 0.25  # from one worker that is asked again to the next


class _Unheard(NamedTuple):
    session: Session
    tenant: int
    size_bytes: int


class LargeResults:
    def __init__(self, room: ByteRoom, is_ours: Callable[[int], bool]) -> None:
        self._room = room
        self._is_ours = is_ours  # whether this server owns a shard
        self._unheard: dict[str, _Unheard] = {}  # session → what it must say again, oldest first
        self.waiting: dict[str, str] = {}  # job → why storage did not take its result yet
        self._invite_due = False
        self._tasks: set[asyncio.Task[None]] = set()
        self.keep: Callable[[Lease, bytes], Awaitable[bytes]]
        self.on_untaken: Callable[[Lease], None]  # its run needs no slot any more
        self.on_kept: Callable[[End], None]  # with a reference in place of its result
        self.on_refused: Callable[[End, Exception], None]
        self.on_dropped: Callable[[Sequence[End]], None]

    @property
    def bytes_held(self) -> int:
        return self._room.bytes_held

    def has_room(self, lease: Lease, size_bytes: int) -> bool:
        """Whether a report with so large a result may be taken now; its room is kept if so."""
        tenant = lease.job.tenant
        if self._room.take((lease.job.id, lease.epoch), tenant, size_bytes):
            return True
        self.on_untaken(lease)
        self._unheard[lease.session.key] = _Unheard(lease.session, tenant, size_bytes)
        self._invite_soon()
        return False

    def add(self, end: End) -> None:
        task = asyncio.create_task(self._keep(end), name="large result")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _keep(self, end: End) -> None:
        tries = 0
        try:
            while self._is_ours(end.lease.shard):  # else its worker reports it elsewhere
                if await self._try_to_keep(end, tries):
                    return
                await pause(min(RETRY_SECONDS * 2.0 ** min(tries, 10), RETRY_SECONDS_MAX))
                tries += 1
            self.on_dropped([end])
        finally:
            self.waiting.pop(end.lease.job.id, None)
            self._room.give_back((end.lease.job.id, end.lease.epoch))
            self._invite()

    async def _try_to_keep(self, end: End, tries: int) -> bool:
        job = end.lease.job.id
        try:
            reference = await self.keep(end.lease, end.result or b"")
        except Unavailable as error:
            log.warning("a large result waits", job=job, error=error.message)
            self.waiting[job] = error.message
            return False
        except Exception as error:
            log.error("storage refused a result", job=job, error=repr(error))
            if tries + 1 < TRIES_MAX:
                return False
            self.on_refused(end, error)
        else:
            self.on_kept(replace(end, result=reference))
        return True

    # -- those who were not heard --------------------------------------------------------------

    def _invite_soon(self) -> None:
        if not self._invite_due:
            self._invite_due = True
            asyncio.get_running_loop().call_later(INVITE_SECONDS, self._look_again)

    def _look_again(self) -> None:
        self._invite_due = False
        self._invite()

    def _invite(self) -> None:
        """Let the one that waits longest and finds room now say hello: it says all again."""
        for key, (session, tenant, size_bytes) in self._unheard.items():
            if self._room.fits(tenant, size_bytes):
                del self._unheard[key]
                session.greeted = False
                session.ring()
                break
        if self._unheard:
            self._invite_soon()
