"""What an error of the store is about: the rows that were sent, or the moment.

A row that cannot be stored (a number out of range, a broken constraint, text that is no text) is
refused for ever: trying again helps nobody, and must hold up nobody. Everything else, be it a store
that is away, a lock, a time limit, a full disk, a missing privilege or a statement that is wrong,
says nothing against the row: it is tried again later, and no outcome is given up because of it.
"""

from __future__ import annotations

import asyncpg

from fairway.store.connections.connection_cache import StoreAway
from fairway.store.connections.database import DISCONNECTED

REASON_CHARACTERS_MAX = 300

#: The connection failed, whatever was asked over it.
CONNECTION_FAILED = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    StoreAway,
    OSError,
)

#: Classes of SQLSTATE that speak of the values or of the row they meet.
_ABOUT_ROWS = frozenset(
    {
        "09",  # a trigger failed
        "21",  # two rows where one may be
        "22",  # data that does not fit
        "23",  # a constraint
        "27",  # a trigger changed the row
        "38",  # a function failed
        "39",
        "44",
        "54",  # past a limit of the server's: too large, too many
        "P0",  # raised by a trigger's own code
        "XX",  # inside the server: a row it cannot read or build
    }
)


def is_node_away(error: Exception) -> bool:
    """Whether a distributed store could not reach one of its nodes."""
    if isinstance(error, asyncpg.PostgresConnectionError):
        return True
    return isinstance(error, asyncpg.InternalServerError) and "connection" in str(error)


def is_slow_to_connect(error: Exception) -> bool:
    """Whether that is only because the node took too long to let it in: away, or very busy."""
    return "could not establish any connections to the node" in str(error)


def is_about_rows(error: Exception) -> bool:
    """Whether these rows, sent again as they are, would be refused again."""
    if isinstance(error, asyncpg.PostgresError):
        if is_node_away(error):
            return False
        return (error.sqlstate or "")[:2] in _ABOUT_ROWS
    return not isinstance(error, DISCONNECTED)  # else raised here, while the rows were packed


def is_locked(error: Exception) -> bool:
    """Whether somebody held a row of it for longer than one may wait."""
    return isinstance(error, asyncpg.LockNotAvailableError)


def code_of(error: Exception) -> str:
    """What tells errors of one cause from others."""
    return getattr(error, "sqlstate", None) or type(error).__name__


def has_answered(error: Exception) -> bool:
    """Whether the store was there to say no."""
    return isinstance(error, asyncpg.PostgresError)


def reason_of(error: Exception) -> str:
    """The store's reason in a line, for people; never longer than a line."""
    said = " ".join(str(error).split()) or type(error).__name__
    code = getattr(error, "sqlstate", None)
    return (f"{said} ({code})" if code else said)[:REASON_CHARACTERS_MAX]
