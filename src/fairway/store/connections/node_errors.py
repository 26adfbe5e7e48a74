"""What a node of a distributed store has said, by its proper class.

Citus hands the words of a node on, but loses the code where it copies rows: a key that is taken,
a deadlock and a lock that was not got all come as an error inside the server. Whoever catches them
by class would take a job that is stored for one that cannot be. The words are PostgreSQL's own, in
English: `lc_messages` of the nodes must leave them so.

A cancel says less there than on one PostgreSQL. What goes to one node is committed by that node
alone (one phase): a coordinator that is told to stop, by a time limit say, stops waiting for the
answer, and the node may have kept all of it. So it is when the node goes away while it commits.
"""

from __future__ import annotations

from typing import Any

import asyncpg


class CancelledInDoubt(Exception):
    """The store was told to stop, or a node went away while it committed: whether it had kept it by
    then is not known. The store answers: its connection is good."""


_BY_WORDS: tuple[tuple[str, type[asyncpg.PostgresError]], ...] = (
    ("duplicate key value violates unique constraint", asyncpg.UniqueViolationError),
    ("deadlock detected", asyncpg.DeadlockDetectedError),
    ("canceling statement due to lock timeout", asyncpg.LockNotAvailableError),
    ("could not serialize access", asyncpg.SerializationError),
    ("could not extend file", asyncpg.DiskFullError),
    ("out of memory", asyncpg.OutOfMemoryError),
)
_IN_DOUBT = (
    "canceling statement due to ",
    "could not commit transaction for shard ",
    "failed to prepare transaction ",
    "could not connect to any active placements",
)
HEARD = (asyncpg.InternalServerError, asyncpg.QueryCanceledError)  # what may mean something else


def as_said(error: Exception) -> Exception:
    """The same, of the class that the node gave it; what is not known stays as it is."""
    words = str(error)
    for begins, kind in _BY_WORDS:
        if words.startswith(begins):
            said: Exception = kind(*error.args)
            said.__dict__.update(error.__dict__, sqlstate=kind.sqlstate)
            return said
    if isinstance(error, asyncpg.QueryCanceledError) or words.startswith(_IN_DOUBT):
        return CancelledInDoubt(words)
    return error


class HearsNodes:
    """Of a connection: each way to run a statement, with errors as the nodes said them."""

    async def fetch(self, *values: Any, **options: Any) -> Any:
        try:
            return await super().fetch(*values, **options)  # type: ignore[misc]  # mixed in
        except HEARD as error:
            raise as_said(error) from error

    async def fetchrow(self, *values: Any, **options: Any) -> Any:
        try:
            return await super().fetchrow(*values, **options)  # type: ignore[misc]  # mixed in
        except HEARD as error:
            raise as_said(error) from error

    async def execute(self, *values: Any, **options: Any) -> Any:
        try:
            return await super().execute(*values, **options)  # type: ignore[misc]  # mixed in
        except HEARD as error:
            raise as_said(error) from error

    async def executemany(self, *values: Any, **options: Any) -> Any:
        try:
            return await super().executemany(*values, **options)  # type: ignore[misc]  # mixed in
        except HEARD as error:
            raise as_said(error) from error

    async def copy_records_to_table(self, *values: Any, **options: Any) -> Any:
        try:
            return await super().copy_records_to_table(*values, **options)  # type: ignore[misc]  # mixed in
        except HEARD as error:
            raise as_said(error) from error
