"""The servers of the platform, for whoever asks: page, commands and API read it here.

It is asked of the store when somebody wants to know: who owns a shard is written there, and a
server that only heard of it from others would tell what was.
"""

from __future__ import annotations

from typing import NamedTuple

from fairway.core.insight.servers import ListedServer
from fairway.services.transient_errors import told_if_away
from fairway.store.connections.database import Database
from fairway.store.insight import server_list as store

SERVERS_MAX = 200


class Servers(NamedTuple):
    found: list[ListedServer]
    answering: str  # the name of the one that answers


class ServerList:
    def __init__(self, database: Database, server: str) -> None:
        self._database = database
        self._server = server

    async def read(self) -> Servers:
        async with told_if_away, self._database.people() as connection:
            found = await store.list_servers(connection, SERVERS_MAX)
        return Servers(found, self._server)
