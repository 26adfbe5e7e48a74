"""Which servers there are and what they own, for people (`queries/server_list.sql`): reads only."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from fairway.core.ids import Term
from fairway.store.connections.database import Connection, fetch
from fairway.store.sql import load

_SQL = load("server_list.sql")


class ListedServer(NamedTuple):
    name: str
    url: str
    owns_shards: bool
    is_leaving: bool
    is_there: bool  # its heartbeat has not run out
    since: datetime | None
    silent_seconds: float | None  # since its last heartbeat; None: of a build that has none
    shards: int  # that it owns
    open_shards: int  # of these, those whose jobs it gives out
    stood_in: int  # of these, those of degraded mode
    newest_term: Term | None


async def list_servers(connection: Connection, servers_max: int) -> list[ListedServer]:
    rows = await fetch(connection, _SQL["list_servers"], servers_max=servers_max)
    return [ListedServer(*row) for row in rows]
