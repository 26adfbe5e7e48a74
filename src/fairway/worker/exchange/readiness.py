"""Whether a worker is of use yet: it is when a server has taken its first hello, not before.

Until then failed calls say why it is not, in a sentence; the same sentence every ten seconds, not
with every try. A server that
has no room for the name of a type refuses that type alone: the worker says so, runs the others,
and asks again now and then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from fairway.core.errors import FairwayError
from fairway.runtime.telemetry import logger
from fairway.wire.exchange import ExchangeReply

log = logger("worker")

GREET_AGAIN_SECONDS = 60.0
SAY_AGAIN_SECONDS = 10.0
NOT_OWNER = "NOT_OWNER"  # the code of: another server owns that now, or nobody yet
#: For so long that is how owners change, as in a restart one by one, and no fault: whoever comes
#: next waits for a term at most.
CHANGE_SECONDS = 15.0


class Readiness:
    def __init__(
        self, name: str, greet_again: Callable[[], None], on_ready: Callable[[], None]
    ) -> None:
        self._name = name
        self._greet_again = greet_again
        self._on_ready = on_ready
        self._refused: set[str] = set()
        self._asking: asyncio.TimerHandle | None = None
        self._said, self._silent_until = ("", ""), 0.0
        self._changes_since: float | None = None  # owners
        self.is_ready = False

    def greeted(self, reply: ExchangeReply, types: Sequence[str], limits: dict[str, str]) -> None:
        refused = set(reply.refused_types)
        self._changes_since = None
        if not self.is_ready:
            run = [one for one in types if one not in refused]
            log.info("worker ready", name=self._name, types=run)
            log.info("limits are held by", **limits)
            self._on_ready()
        self.is_ready = True
        self._note_refused(refused, reply.refused_why)

    def _note_refused(self, refused: set[str], why: dict[str, str]) -> None:
        for name in sorted((refused - self._refused) & set(why)):
            log.error("a job type is refused and not run here", type=name, why=why[name])
        if more := refused - self._refused - set(why):
            log.error(
                "job types are refused and not run here: there is no room for their names; see"
                " TOO_MANY_JOB_TYPES in the documentation",
                types=sorted(more),
                ask_again_in_seconds=GREET_AGAIN_SECONDS,
            )
        if taken := self._refused - refused:
            log.info("job types that were refused are run now", types=sorted(taken))
        self._refused = refused
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None
        if refused:
            loop = asyncio.get_running_loop()
            self._asking = loop.call_later(GREET_AGAIN_SECONDS, self._greet_again)

    def failed(self, error: FairwayError, seconds: float, server: str) -> None:
        now = time.monotonic()
        tell, event = log.warning, "exchange failed" if self.is_ready else "worker is not ready"
        if self.is_ready and self._is_change(error, now):
            tell, event = log.info, "jobs go to another server, asking again"
        said = event, error.message
        if said == self._said and now < self._silent_until:
            return
        self._said, self._silent_until = said, now + SAY_AGAIN_SECONDS
        pause_seconds = round(seconds, 2)
        tell(event, error=error.message, server=server, retry_in_seconds=pause_seconds)

    def _is_change(self, error: FairwayError, now: float) -> bool:
        if error.code != NOT_OWNER:
            return False
        if self._changes_since is None:
            self._changes_since = now
        return now - self._changes_since < CHANGE_SECONDS
