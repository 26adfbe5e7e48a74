"""Reads keys that were not read ahead: brand new ones, and guesses.

One question for all who show the same key at a time: a fleet that starts with a new one is no crowd
of guessers. All of them together hold one connection.
"""

from __future__ import annotations

import asyncio

from fairway.core.errors import Unavailable
from fairway.services.transient_errors import told_if_away
from fairway.store.connections.database import Database
from fairway.store.registry import tenants as store
from fairway.store.registry.tenants import StoredKey

KEYS_ASKED_MAX = 100  # that wait to be looked up


class KeyLookup:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._one_looks_up = asyncio.Lock()
        self._asked: dict[str, asyncio.Task[StoredKey | None]] = {}

    async def read(self, key_id: str) -> StoredKey | None:
        asked = self._asked.get(key_id)
        if asked is None:
            if len(self._asked) >= KEYS_ASKED_MAX:
                raise Unavailable("Very many unknown keys are being looked up; try again shortly.")
            asked = self._asked[key_id] = asyncio.create_task(self._read(key_id))
            asked.add_done_callback(lambda done: self._answered(key_id, done))
        return await asyncio.shield(asked)  # one who leaves takes it from nobody

    async def _read(self, key_id: str) -> StoredKey | None:
        async with told_if_away, self._one_looks_up, self._database.people() as connection:
            return await store.read_key(connection, key_id)

    def _answered(self, key_id: str, done: asyncio.Task[StoredKey | None]) -> None:
        del self._asked[key_id]
        if not done.cancelled():
            done.exception()  # heard, also if all who asked have left
