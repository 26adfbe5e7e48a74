"""Hooks that look on, called in a thread of their own: a slow one holds up hooks, and no job.

So many wait at most; what is beyond is left out and told. A hook has a context in which
`Ctx.current()` is the run that it is about.
"""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import msgspec

from fairway.core.ownership.tenant_parts import whole_name
from fairway.sdk.handler.context import Ctx, enter
from fairway.sdk.hooks import Hooks, JobDeath, RunFailure
from fairway.worker.pipe.pipe import DeadJob

log = logging.getLogger("fairway.hooks")

WAITING_MAX = 1_000


class HookCalls:
    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="hooks")  # begins with its first
        self._waiting = 0

    def failed(self, ctx: Ctx, error: BaseException | None) -> Future[None] | None:
        """A run failed; None when nobody wants to know."""
        if not self._hooks.on_failure or error is None:
            return None
        context = contextvars.copy_context()
        context.run(enter, ctx)
        return self._call(partial(context.run, self._hooks.failed, RunFailure(ctx, error)))

    def died(self, dead: DeadJob) -> None:
        if self._hooks.on_death:
            error = msgspec.json.decode(dead.error)
            death = JobDeath(
                dead.job,
                dead.type,
                whole_name(dead.tenant),
                dead.attempt,
                dead.failure,
                error if isinstance(error, dict) else {},
            )
            self._call(partial(self._hooks.died, death))

    def _call(self, call: Callable[[], None]) -> Future[None] | None:
        if self._waiting >= WAITING_MAX:
            log.error("a hook is not called: %d wait before it", self._waiting)
            return None
        self._waiting += 1
        called = self._thread.submit(call)
        called.add_done_callback(self._done)
        return called

    def _done(self, called: Future[None]) -> None:
        self._waiting -= 1
