"""Rescues jobs from workers that fell silent, and writes down which workers were heard.

The database's clock decides how long a session has been silent; each pool says how long is too
long. A rescued job is granted again at once: the loss costs a delivery, never an attempt.
"""

from __future__ import annotations

from fairway.core.pools import BUILT_IN
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import logger
from fairway.services.dispatcher import Dispatcher
from fairway.store import leases as store
from fairway.store.database import Database

log = logger("rescuer")


class Rescuer:
    def __init__(self, database: Database, dispatcher: Dispatcher, settings: Settings) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._lease_seconds = {
            pool.number: settings.lease_seconds_of(pool.name) for pool in BUILT_IN
        }
        self._shortest = min(self._lease_seconds.values())
        self._last_us = 0

    @property
    def rest_seconds(self) -> float:
        return min(1.0, self._shortest / 5)

    async def run_once(self, now_us: int) -> float:
        heard = [
            (session.key, session.worker)
            for session in self._dispatcher.sessions.values()
            if session.seen_us >= self._last_us
        ]
        for shard in list(self._dispatcher.terms):
            async with self._database.hot() as connection:
                if heard:
                    await store.see_sessions(connection, shard, heard)
                silent = await store.silent_sessions(connection, shard, self._shortest)
            forgotten = [
                key for key, seconds in silent.items() if self._give_up(key, seconds, now_us)
            ]
            if forgotten:
                async with self._database.hot() as connection:
                    await store.forget_sessions(connection, shard, forgotten)
        self._last_us = now_us
        return self.rest_seconds

    def _give_up(self, key: str, silent_seconds: float, now_us: int) -> bool:
        """Take away what a silent session held for too long; True when nothing is left of it."""
        session = self._dispatcher.sessions.get(key)
        if session is None:
            return True
        if (now_us - session.seen_us) / 1e6 < self._shortest:
            return False  # heard since; the store will know in a moment
        lost = [
            lease
            for lease in session.leases.values()
            if silent_seconds >= self._lease_seconds[lease.job.pool]
        ]
        if lost:
            log.warning("worker silent", worker=session.worker, jobs=len(lost))
            self._dispatcher.lost(lost)
            session.revoked += [lease.job.id for lease in lost]  # should it be heard of again
        if not session.leases:
            self._dispatcher.end_session(session)
            return True
        return False
