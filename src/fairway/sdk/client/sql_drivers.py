"""One statement on a connection of the caller's, whichever library it is of.

Known by the modules of its class and those it inherits from: nothing is imported that the caller
has not. The statement runs in whatever transaction is open; nothing is committed here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

SYNC = "psycopg and psycopg2 connections, SQLAlchemy's Connection and Session, Django's connection"
ASYNC = (
    "asyncpg's and psycopg's asynchronous connections, SQLAlchemy's AsyncConnection and"
    " AsyncSession"
)


class SqlCall(NamedTuple):
    """A function of the database that takes one argument and answers one value a row."""

    text: str  # with `{}` where the argument goes
    argument: Any


def fetch(connection: Any, call: SqlCall) -> list[Any]:
    """The first column, on a connection that blocks."""
    modules = _modules_of(connection)
    if "sqlalchemy" in modules and not _is_async(connection, modules):
        rows = connection.execute(*_for_sqlalchemy(call))
    elif hasattr(connection, "cursor") and not _is_async(connection, modules):
        with _cursor(connection, modules) as cursor:
            cursor.execute(call.text.format("%s"), (call.argument,))
            return [_first(row) for row in cursor.fetchall()]
    else:
        raise _not_known(connection, SYNC, "aenqueue")
    return [row[0] for row in rows]


async def afetch(connection: Any, call: SqlCall) -> list[Any]:
    """The first column, on a connection that is awaited."""
    modules = _modules_of(connection)
    if "asyncpg" in modules:
        rows = await connection.fetch(call.text.format("$1"), call.argument)
    elif not _is_async(connection, modules):
        raise _not_known(connection, ASYNC, "enqueue")
    elif "sqlalchemy" in modules:
        rows = await connection.execute(*_for_sqlalchemy(call))
    else:
        async with _cursor(connection, modules) as cursor:
            await cursor.execute(call.text.format("%s"), (call.argument,))
            return [_first(row) for row in await cursor.fetchall()]
    return [row[0] for row in rows]


def _modules_of(connection: Any) -> set[str]:
    """Of the class and of those it inherits from; whole, and their roots."""
    names = {kind.__module__ for kind in type(connection).__mro__}
    return names | {name.partition(".")[0] for name in names}


def _is_async(connection: Any, modules: set[str]) -> bool:
    if "sqlalchemy" in modules:
        return any(name.startswith("sqlalchemy.ext.asyncio") for name in modules)
    return "asyncpg" in modules or hasattr(connection, "__aenter__")


def _cursor(connection: Any, modules: set[str]) -> Any:
    """One whose rows are tuples, whatever the caller likes its own to be."""
    if "psycopg" in modules:
        return connection.cursor(row_factory=_as_they_are)
    return connection.cursor()


def _as_they_are(cursor: Any) -> Callable[[Any], Any]:
    return tuple


def _first(row: Any) -> Any:
    return next(iter(row.values())) if isinstance(row, Mapping) else row[0]


def _for_sqlalchemy(call: SqlCall) -> tuple[Any, dict[str, Any]]:
    text = importlib.import_module("sqlalchemy").text
    return text(call.text.format(":argument")), {"argument": call.argument}


def _not_known(connection: Any, known: str, other: str) -> TypeError:
    kind = type(connection)
    return TypeError(
        f"{kind.__module__}.{kind.__qualname__} is no connection that is known here: {known}."
        f" Perhaps fairway.sql.{other} is meant."
    )
