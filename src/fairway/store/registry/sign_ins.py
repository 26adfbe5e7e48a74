"""Sign-ins: sessions of browsers and links that open one, by the hash of what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from fairway.core.sign_in import PER_KEY_MAX, SignInKind
from fairway.store.connections.database import (
    Connection,
    execute,
    fetch_row,
    fetch_value,
    fetch_values,
)
from fairway.store.sql import load

_SQL = load("sign_ins.sql")

LAPSED_MAX = 100  # that go with one new one


class StoredSession(NamedTuple):
    key_id: str
    expires_at: datetime


async def add_sign_in(
    connection: Connection, token_hash: bytes, kind: SignInKind, key_id: str, lasts: timedelta
) -> datetime:
    """When it runs out. The oldest of its key give way, and some that ran out long ago go.

    Inside a transaction that holds the key's row (`tenants.key_facts`).
    """
    expires_at: datetime = await fetch_value(
        connection,
        _SQL["add_sign_in"],
        token_hash=token_hash,
        kind=kind,
        key_id=key_id,
        lasts=lasts,
    )
    await execute(connection, _SQL["drop_oldest"], key_id=key_id, kind=kind, kept=PER_KEY_MAX)
    await execute(connection, _SQL["drop_lapsed"], limit=LAPSED_MAX)
    return expires_at


async def read_session(connection: Connection, token_hash: bytes) -> StoredSession | None:
    row = await fetch_row(connection, _SQL["read_session"], token_hash=token_hash)
    return StoredSession(*row) if row else None


async def living_sessions(connection: Connection, hashes: Sequence[bytes]) -> set[bytes]:
    return set(await fetch_values(connection, _SQL["living_sessions"], hashes=hashes))


async def end_session(connection: Connection, token_hash: bytes) -> bool:
    return await execute(connection, _SQL["end_session"], token_hash=token_hash) == 1


async def take_link(connection: Connection, token_hash: bytes) -> str | None:
    """The id of the key that made it; None: there is none, or none any more."""
    key_id: str | None = await fetch_value(connection, _SQL["take_link"], token_hash=token_hash)
    return key_id
