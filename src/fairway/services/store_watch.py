"""Notices that the store does not answer, and that it does again.

A link can take bytes and never bring an answer. Without this, everybody who wants something of the
store would have to find that out alone, at the price of a whole deadline each. So a tiny question
is asked all the time, on a connection of its own. Two in a row without an answer, and the store is
away: whoever waits hears so, and new calls are refused at once. One answer, and it is back.

The question has a short time. To connect has its own, as a long or loaded link takes a second for
that and answers quickly afterwards. When an answer is missing, a connect is first given little time
too, so that a silent store is soon known, then more and more: whoever can be reached is found.

An error is an answer: a store that is shut, locked, full, read-only or out of connections says so
to everybody who asks, at once. That it takes no connections is told here, in one line for all
loops that fail of it, as its silence is. When it was read-only and is not any more, connections
are made anew: after a failover the old ones may lead to the server that was demoted.
"""

from __future__ import annotations

from collections.abc import Callable

from fairway.core.backoff import Outage, ToldElsewhere, backoff_seconds
from fairway.runtime.telemetry import logger
from fairway.store.connections.connection_cache import Deadline
from fairway.store.connections.database import CONNECT_SECONDS, DISCONNECTED, Connection, Database
from fairway.store.connections.error_classes import CONNECTION_FAILED
from fairway.store.connections.hosts import host_of

log = logger("store")

WATCH = "store watch"  # the loop's name
REST_SECONDS = 0.4
REST_AWAY_SECONDS = 0.2
ANSWER_SECONDS = 0.9
MISSES_MAX = 2  # one may be our own: a process that was stopped for a while finds its timers over


class StoreWatch:
    def __init__(
        self, database: Database, on_back: Callable[[], None], look_now: Callable[[], None]
    ) -> None:
        self._database = database
        self._on_back = on_back
        self._look_now = look_now  # wakes the loop of this one
        self._outage = Outage()
        self._connection: Connection | None = None
        self._misses = 0
        self._was_read_only = False

    async def run_once(self, now_us: int) -> float:
        """Ask; a loop calls this."""
        is_new = self._connection is None or self._connection.is_closed()
        try:
            await self._ask()
        except TimeoutError as silence:
            return await self._missed(silence, now_us)
        except DISCONNECTED as error:
            self._connection = None  # whoever asks hears of it as fast as we did
            if not is_new:
                return 0.0  # it may be that one alone: a new one shows it
            if isinstance(error, CONNECTION_FAILED):
                return self._refused(error, now_us)
        self._answered(now_us)
        return REST_SECONDS

    def explains(self, error: Exception) -> ToldElsewhere:
        """Whether a loop failed because the store is not to be reached, which is told here."""
        if not isinstance(error, CONNECTION_FAILED):
            return ToldElsewhere.NO
        if self._database.hosts.is_unreachable:
            return ToldElsewhere.YES
        if isinstance(error, TimeoutError):
            return ToldElsewhere.NO  # slow, as far as anybody knows
        self._look_now()
        return ToldElsewhere.PERHAPS

    def _answered(self, now_us: int) -> None:
        self._misses = 0
        self._database.hosts.seen(is_unreachable=False)
        if (over := self._outage.worked(now_us)) is not None:
            log.info("the store answers again", seconds=round(over.seconds, 1))
            if self._database.is_away:
                self._database.back()
            self._on_back()

    def _refused(self, error: Exception, now_us: int) -> float:
        self._misses = 0
        if self._database.is_away:  # not silent any more: each hears for itself
            self._database.back()
        self._database.hosts.seen(is_unreachable=True)
        self._tell(error, now_us)
        return REST_SECONDS

    def _tell(self, error: Exception, now_us: int) -> None:
        """When it begins, when the reason is another one, and every few minutes."""
        if self._outage.failed(type(error).__name__, now_us):
            where = host_of(self._database.dsn)
            why = str(error) or type(error).__name__
            log.error("the store does not answer", database=where, why=why)

    async def _ask(self) -> None:
        if self._connection is None or self._connection.is_closed():
            self._connection = await self._database.dedicated(
                "fairway-watch", connect_seconds(self._misses)
            )
        async with Deadline(self._connection, ANSWER_SECONDS) as connection:
            is_read_only = await connection.fetchval("SHOW transaction_read_only") == "on"
        if is_read_only:  # another server may be the one to write to: look for it next time
            connection.terminate()
        elif self._was_read_only:
            log.info("the store can be written to again")
            await self._database.renew()
            self._on_back()
        self._was_read_only = is_read_only

    async def _missed(self, silence: TimeoutError, now_us: int) -> float:
        self._misses += 1
        if self._misses >= MISSES_MAX:
            self._database.hosts.seen(is_unreachable=True)
            self._tell(silence, now_us)
            if not self._database.is_away:
                await self._database.away()
        return REST_AWAY_SECONDS if self._database.is_away else 0.0


def connect_seconds(misses: int) -> float:
    """How long a connect may take after so many answers in a row were missing."""
    if not misses:
        return CONNECT_SECONDS  # nothing speaks against the store
    return backoff_seconds(ANSWER_SECONDS, misses, CONNECT_SECONDS)
