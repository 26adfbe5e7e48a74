"""Which servers there are and what they own, for people (`queries/server_list.sql`): reads only."""

from __future__ import annotations

from fairway.core.insight.servers import ListedServer
from fairway.store.connections.database import Connection, fetch
from fairway.store.sql import load

_SQL = load("server_list.sql")


async def list_servers(connection: Connection, servers_max: int) -> list[ListedServer]:
    rows = await fetch(connection, _SQL["list_servers"], servers_max=servers_max)
    return [ListedServer(*row) for row in rows]
