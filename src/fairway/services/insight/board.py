"""The whole platform as it is now: this server's sight and the others', joined once for all.

However many look, it is computed once a look. Servers tell each other through the store; while it
is away, what the others said last counts until it is too old.
"""

from __future__ import annotations

import asyncio

import msgspec

from fairway.core.errors import Unavailable
from fairway.core.insight.look import Look
from fairway.core.insight.sight import ServerSight, fresh, joined, standing
from fairway.runtime.telemetry import logger
from fairway.services.insight.observer import Observer
from fairway.services.store_clock import StoreClock
from fairway.store.connections.database import DISCONNECTED, Database
from fairway.store.insight import sights

log = logger("insight")

TELL_SECONDS = 4.0
SERVERS_MAX = 64  # that are heard

_decode = msgspec.json.Decoder(ServerSight).decode


class Board:
    def __init__(
        self, database: Database, observer: Observer, store_clock: StoreClock, server: str
    ) -> None:
        self._database = database
        self._observer = observer
        self._clock = store_clock
        self._server = server
        self._others: list[ServerSight] = []
        self._changed = asyncio.Event()
        self.seen: ServerSight | None = None  # by all servers; None until the first look
        self.servers = 0  # that it is made of
        self.is_closed = False  # the server is about to stop

    @property
    def changed(self) -> asyncio.Event:
        """Set when there is something newer than what is there now."""
        return self._changed

    async def look(self, look: Look) -> None:
        await self._observer.look(look)
        if (own := self._observer.sight) is None:
            return
        sights = standing([own, *fresh(self._others, self._clock.unix_ms())])
        self.seen, self.servers = joined(sights), len(sights)
        self._wake()

    def close(self) -> None:
        """The server is about to stop: nobody waits for something newer any more."""
        self.is_closed = True
        self._wake()

    def _wake(self) -> None:
        before, self._changed = self._changed, asyncio.Event()
        before.set()

    async def run_once(self, now_us: int) -> float:
        """Tell the others, and hear them."""
        own = self._observer.sight
        try:
            async with self._database.background() as connection:
                if own is not None:
                    await sights.tell_sight(connection, self._server, msgspec.json.encode(own))
                told = await sights.other_sights(connection, self._server, SERVERS_MAX)
        except (*DISCONNECTED, Unavailable):
            return TELL_SECONDS
        self._others = [one for text in told if (one := _decoded(text)) is not None]
        return TELL_SECONDS


def _decoded(text: bytes) -> ServerSight | None:
    """None: of a server of another version, while they are replaced."""
    try:
        return _decode(text)
    except msgspec.DecodeError as error:
        log.info("another server's sight is not understood", error=repr(error))
        return None
