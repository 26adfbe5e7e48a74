"""Ties a server's object storage to its database: all servers of a database use the same one.

The first server that opens its storage marks it, and the database knows the marker. A server whose
storage has another marker, or none, reads and writes no large data: what it took would be lost to
the others, and what it misses is not gone. It looks again when somebody asks, once a second at
most, so a storage that is mended needs no restart.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress

from fairway.core.errors import Unavailable
from fairway.core.object_storage.storage_marker import (
    REFUSALS,
    MarkerState,
    make_marker,
    standing_of,
)
from fairway.runtime.telemetry import Metrics, logger
from fairway.services.transient_errors import told_if_away
from fairway.store.connections.connection_cache import StoreAway
from fairway.store.connections.database import Database
from fairway.store.object_storage.storage import Storage
from fairway.store.registry import tenants
from fairway.store.registry.tenants import Cluster

log = logger("storage")

LOOK_SECONDS_MAX = 5.0
MARK_SECONDS_MAX = 2.0  # less than an idle transaction is allowed
AGAIN_SECONDS = 1.0
ROUNDS_MAX = 3  # another server may mark its storage while we look


class StorageFailures:
    """Tenants hear no reason, so the log must have it; an outage fails every call alike."""

    def __init__(self, metrics: Metrics) -> None:
        self._count = metrics.storage_failures
        self._is_tied = False

    def tied(self) -> None:
        """From now on; until then, the tie has the reason."""
        self._is_tied = True

    def note(self, reason: str, is_news: bool) -> None:
        self._count.inc()
        if is_news and self._is_tied:
            log.warning("object storage away", reason=reason)


class StorageBinding:
    def __init__(
        self, database: Database, storage: Storage, cluster: Cluster, failures: StorageFailures
    ) -> None:
        self._failures = failures
        self._database = database
        self._storage = storage
        self._cluster = cluster
        self._lock = asyncio.Lock()  # a hundred who ask at once ask once
        self._marker: str | None = None
        self._refusal: Unavailable | None = None
        self._told = ""
        self._again_at = 0.0

    async def begin(self) -> None:
        """When a server starts: tie it, or say in the log why not. Small data needs none."""
        with suppress(Unavailable):
            await self.hold()

    async def hold(self) -> str:
        """The marker of this storage, which is the database's; raises Unavailable if it is not."""
        async with self._lock:
            if self._marker is None:
                self._marker = await self._look()
                self._failures.tied()
            return self._marker

    async def _look(self) -> str:
        loop = asyncio.get_running_loop()
        if self._refusal is not None and loop.time() < self._again_at:
            self._failures.note(self._refusal.message, is_news=False)
            raise Unavailable(self._refusal.message, code=self._refusal.code)
        try:
            marker = await self._look_in_time()
        except Unavailable as error:
            self._refusal, self._again_at = error, loop.time() + AGAIN_SECONDS
            self._tell(self._storage.failure or error.message)
            raise
        self._told = ""
        return marker

    async def _look_in_time(self) -> str:
        with told_if_away:
            try:
                async with asyncio.timeout(LOOK_SECONDS_MAX):
                    return await self._tied()
            except StoreAway:
                raise
            except TimeoutError:
                raise self._storage.refusal("Object storage takes too long to answer.") from None

    async def _tied(self) -> str:
        for _ in range(ROUNDS_MAX):
            async with self._database.people() as connection:
                known = await tenants.storage_marker(connection)
            found = await self._storage.read_marker()
            standing = standing_of(known, found, self._cluster.secret)
            if standing in REFUSALS:
                raise self._storage.refusal(REFUSALS[standing])
            if standing is MarkerState.OURS and known is not None:
                return known
            await self._mark(found)
        raise Unavailable()

    async def _mark(self, found: str | None) -> None:
        """The storage first: a crash in between leaves a marker that is known as ours."""
        async with self._database.people() as connection, connection.transaction():
            if await tenants.lock_storage_marker(connection) is None:
                marker = found or make_marker(self._cluster.secret, secrets.token_hex(16))
                if found is None:
                    async with asyncio.timeout(MARK_SECONDS_MAX):
                        await self._storage.write_marker(marker)
                await tenants.know_storage_marker(connection, marker)
                log.info("object storage marked", storage=self._storage.address)

    def _tell(self, why: str) -> None:
        if why != self._told:
            log.error("object storage refused", storage=self._storage.address, why=why)
        self._told = why
