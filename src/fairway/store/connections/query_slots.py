"""Who may ask now: few at a time in all, fewer of one tenant's, and some in line.

Counts, sums and filtered lists go through as many rows as a tenant has: one at a time. What is
quick is asked two at a time. Without this, the questions of one tenant hold every connection that
all the others' need. A tenant's own questions wait for each other first, so that its line is not
everybody's.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import asyncpg

from fairway.core.errors import LimitReached, Unavailable
from fairway.core.ids import TenantId
from fairway.store.connections.node_errors import CancelledInDoubt
from fairway.store.connections.row_security import UseAs

SLOW_MAX = 2  # of everybody's, at a time: half of the connections stay for quick ones
IN_LINE_MAX = 32  # of one tenant's, one of them being asked; who waits costs little, not for long


class QuerySlotLimits(NamedTuple):
    in_all: int
    each: int  # of one tenant's
    in_line: int  # of one tenant's, those that are being asked among them


SLOW = QuerySlotLimits(SLOW_MAX, 1, IN_LINE_MAX)
QUICK = QuerySlotLimits(1000, 2, 256)  # the pool itself bounds how many are asked


class QuerySlots:
    def __init__(self, wait_seconds: float, limits: QuerySlotLimits = SLOW) -> None:
        self._wait_seconds = wait_seconds
        self._limits = limits
        self._all = asyncio.Semaphore(limits.in_all)
        self._of_tenant: dict[TenantId, _Line] = {}

    async def take(self, tenant: TenantId) -> None:
        line = self._of_tenant.get(tenant)
        if line is None:
            line = self._of_tenant[tenant] = _Line(self._limits.each)
        if line.length >= self._limits.in_line:
            raise LimitReached(
                f"{line.length} questions of yours are being answered already; ask the next one"
                " when they are.",
                code="TOO_MANY_QUESTIONS",
            )
        line.length += 1
        try:
            async with asyncio.timeout(self._wait_seconds):
                await line.turn.acquire()
                try:
                    await self._all.acquire()
                except BaseException:
                    line.turn.release()
                    raise
        except BaseException as error:
            self._leave(tenant, line)
            if isinstance(error, TimeoutError):
                raise Unavailable(
                    "Other questions are being answered; try again shortly.",
                    code="OVERLOADED",
                ) from None
            raise

    def give_back(self, tenant: TenantId) -> None:
        line = self._of_tenant[tenant]
        self._all.release()
        line.turn.release()
        self._leave(tenant, line)

    def _leave(self, tenant: TenantId, line: _Line) -> None:
        line.length -= 1
        if not line.length:
            del self._of_tenant[tenant]


class _Line:
    def __init__(self, each: int) -> None:
        self.turn = asyncio.Semaphore(each)
        self.length = 0


class SlowUse:
    """`async with`: a place, then a connection."""

    def __init__(self, slots: QuerySlots, tenant: TenantId, use: UseAs) -> None:
        self._slots = slots
        self._tenant = tenant
        self._use = use

    async def __aenter__(self) -> Any:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await self._slots.take(self._tenant)
        try:
            self._use.begun(loop.time() - began)
            return await self._use.__aenter__()
        except BaseException:
            self._slots.give_back(self._tenant)
            raise

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        try:
            await self._use.__aexit__(kind, error, traceback)
        finally:
            self._slots.give_back(self._tenant)
        if isinstance(error, (asyncpg.QueryCanceledError, CancelledInDoubt)):
            raise Unavailable(
                "This question goes through more jobs than can be looked at in one call: ask for"
                " a shorter time (since, until) or with another filter.",
                code="QUESTION_TOO_LARGE",
            ) from error
