"""Which of several hosts is asked first: never again the one that kept us waiting last.

The driver tries the hosts of an address in their order, within one time for all of them. One that
takes a connection and never answers, as a machine does that is stopped or half gone, uses up that
time, and the others are never asked. So after a connect that failed, for whatever reason, the
first host becomes the last. Each gets the whole time of a connect.

Of several hosts, one that can be written to is meant, unless the address says otherwise. An old
primary that comes back after a promotion can be written to as well: a host whose history is older
than the newest that was met (a lower timeline) is refused.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

import asyncpg

from fairway.core.errors import Unavailable
from fairway.store.connections.known_types import TypedConnection

CONNECT_SECONDS = 10.0
LOOK_SECONDS = 2.0  # for all hosts together, once at the start

#: Each promotion begins a new timeline. A name of a file of the log begins with it, at once; what
#: the control file says comes with the next checkpoint.
TIMELINE = """
SELECT CASE WHEN pg_is_in_recovery() THEN 0
            ELSE ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int8 END
"""

_LISTS = ("host", "port")

#: What a connect raises whose address, network, role or password is not right.
NO_CONNECTION = (
    OSError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.TargetServerAttributeNotMatched,  # none of its hosts can be written to
    ValueError,
)
#: How the sentence on any of these begins.
UNREACHABLE = "No connection to the database"
NAMED = "FAIRWAY_DATABASE_URL (or FAIRWAY_OWNER_DATABASE_URL)"


class OldHistory(OSError):
    """A primary from before a promotion: what is written to it, nobody else will ever see."""


class Hosts:
    """The hosts of one address, in the order in which they are tried now."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.count = count_of(dsn)
        is_open = self.count > 1 and "target_session_attrs=" not in dsn
        self.options = {"target_session_attrs": "read-write"} if is_open else {}
        self.is_unreachable = False  # silent, or no connections: as the watch of the store saw it
        self.timeline = 0  # the newest that was met; 0 of a single host: nobody asked

    async def connect(self, **options: Any) -> Any:
        """One try; who comes next begins with another host if this one fails or is given up."""
        dsn = self.dsn
        try:
            connection = await asyncpg.connect(
                dsn, **{"connection_class": TypedConnection, **self.options, **options}
            )
            if self.count > 1:
                await self._refuse_old_history(connection, options.get("timeout"))
            return connection
        except BaseException:
            if self.dsn == dsn:  # of many that wait for the same host, the first to fail decides
                self.dsn = turned(dsn)
            raise

    def seen(self, *, is_unreachable: bool) -> None:
        """By the watch of the store."""
        self.is_unreachable = is_unreachable

    async def look_at_all(self) -> None:
        """Learn the newest history of the hosts that answer: for a server that has just started."""
        if self.count < 2:
            return
        orders = [self.dsn]
        while len(orders) < self.count:
            orders.append(turned(orders[-1]))
        looks = (_timeline_at(dsn, self.options) for dsn in orders)
        self.timeline = max(self.timeline, *await asyncio.gather(*looks))

    async def _refuse_old_history(self, connection: Any, seconds: float | None) -> None:
        try:
            async with asyncio.timeout(seconds or CONNECT_SECONDS):
                timeline = await connection.fetchval(TIMELINE)
        except asyncpg.PostgresError:
            return  # an engine that has no such thing
        except BaseException:
            connection.terminate()
            raise
        if 0 < timeline < self.timeline:
            connection.terminate()
            raise OldHistory(
                f"a host of {host_of(self.dsn)} is a primary from before a promotion"
                f" (timeline {timeline}, the newest is {self.timeline}): stop it"
            )
        self.timeline = max(self.timeline, timeline)

    async def connect_any(self, **options: Any) -> Any:
        """As many tries as there are hosts: for those that would not try again soon."""
        for _ in range(self.count - 1):
            try:
                return await self.connect(**options)
            except OSError:  # also a time that is over
                continue
        return await self.connect(**options)


async def _timeline_at(dsn: str, options: dict[str, str]) -> int:
    """Of the first host in this order that is meant; 0 when none tells."""
    connection = None
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            connection = await asyncpg.connect(dsn, **options)
            return int(await connection.fetchval(TIMELINE))
    except NO_CONNECTION:
        return 0
    finally:
        if connection is not None:
            connection.terminate()


async def connect_for_once(dsn: str, name: str) -> Any:
    """For a program that has just been started: a sentence when there is no connection."""
    try:
        return await Hosts(dsn).connect_any(
            timeout=CONNECT_SECONDS, server_settings={"application_name": name}
        )
    except NO_CONNECTION as failure:
        raise Unavailable(" ".join(no_connection(dsn, failure))) from failure


def no_connection(dsn: str, failure: Exception) -> tuple[str, str]:
    """What happened, and what to do about it."""
    scheme = _parts(dsn)[0] if "://" in dsn else ""  # else all of it, with a password
    if scheme not in ("postgresql", "postgres"):
        said = f"{scheme}://" if scheme else "no such beginning"
        begins = f"an address begins with postgresql://, and this one has {said}."
        what = f"{UNREACHABLE} at {host_of(dsn)}: {begins}"
        return what, f"Write {NAMED} as in postgresql://user:password@host/database."
    reason = str(failure).rstrip(".") or type(failure).__name__
    what = f"{UNREACHABLE} at {host_of(dsn)}: {reason}."
    if isinstance(failure, asyncpg.InvalidAuthorizationSpecificationError):  # or the password
        return what, f"It is up, and refuses this login: are user and password in {NAMED} right?"
    if isinstance(failure, asyncpg.InvalidCatalogNameError):
        return what, f"Make that database with CREATE DATABASE, or name another in {NAMED}."
    return what, f"Is it up, and is {NAMED} right?"


def host_of(dsn: str) -> str:
    """Where an address leads, for people: without user and password."""
    _, _, hosts, path, query = _parts(dsn)
    named = [value for name, value in _fields(query) if name == "host"]
    return f"{hosts or ','.join(named) or 'this machine'}{path}"


def count_of(dsn: str) -> int:
    _, _, hosts, _, query = _parts(dsn)
    lists = [hosts, *(value for name, value in _fields(query) if name == "host")]
    return max(text.count(",") + 1 for text in lists)


def turned(dsn: str) -> str:
    """The same address, with the first host as the last."""
    if count_of(dsn) < 2:
        return dsn
    scheme, user, hosts, path, query = _parts(dsn)
    fields = [
        f"{name}={_turn(value) if name in _LISTS else value}" for name, value in _fields(query)
    ]
    return f"{scheme}://{user}{_turn(hosts)}{path}" + (f"?{'&'.join(fields)}" if query else "")


def _parts(dsn: str) -> tuple[str, str, str, str, str]:
    """Scheme, user with its `@`, hosts, path with its `/`, and what stands behind the `?`."""
    head, _, query = dsn.partition("?")
    scheme, _, rest = head.partition("://")
    place, slash, path = rest.partition("/")
    user, at, hosts = place.rpartition("@")
    return scheme, user + at, hosts, slash + path, query


def _fields(query: str) -> list[tuple[str, str]]:
    pairs = (field.partition("=") for field in query.split("&") if field)
    return [
        (name, value.replace("%2C", ",") if name in _LISTS else value) for name, _, value in pairs
    ]


def _turn(text: str) -> str:
    first, comma, others = text.partition(",")
    return f"{others},{first}" if comma else text


async def identity_of(dsn: str) -> tuple[str, datetime]:
    """The same for every login of one database, and only there."""
    connection = await connect_for_once(dsn, "fairway-start")
    try:
        row = await connection.fetchrow("SELECT current_database(), pg_postmaster_start_time()")
        return (row[0], row[1])
    finally:
        await connection.close()
