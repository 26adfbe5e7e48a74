"""The connection on which a server speaks with the store about terms: its own, never a pool's.

On it others tell when a shard is taken or let go, and that a tenant's own transaction with jobs in
it was committed. It asks nothing: whoever needs it has it for the length of a deadline of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from fairway.store import leadership as store
from fairway.store import outbox as outbox_store
from fairway.store.connections.connection_cache import Deadline
from fairway.store.connections.database import Connection, Database

PATIENCE_SECONDS = 3.0


class OwnerConnection:
    def __init__(
        self,
        database: Database,
        on_news: Callable[[], None],
        on_committed: Callable[[], None],
    ) -> None:
        self._database = database
        self._on_news = on_news
        self._on_committed = on_committed
        self._connection: Connection | None = None

    async def get(self) -> Connection:
        """The one that is there, or a new one where it broke."""
        if self._connection is None or self._connection.is_closed():
            connection = await self._database.dedicated()
            async with Deadline(connection, PATIENCE_SECONDS):
                await connection.add_listener(store.CHANNEL, self._hear_news)
                await connection.add_listener(outbox_store.CHANNEL, self._hear_commit)
            self._connection = connection
        return self._connection

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()

    def _hear_news(self, *notice: object) -> None:
        self._on_news()

    def _hear_commit(self, *notice: object) -> None:
        self._on_committed()
