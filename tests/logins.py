"""Logins of a tenant's own program, as an operator lets them hand in jobs."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

from tests.postgres import connected

from fairway.store.registry.sql_logins import allow_login


@asynccontextmanager
async def login_of(dsn: str, tenant: str | None) -> AsyncIterator[str]:
    """Where a login connects that is nothing but this tenant's; None: nobody's."""
    login = f"shop_{secrets.token_hex(6)}"
    async with connected(dsn) as owner:
        await owner.execute(f"CREATE ROLE {login} LOGIN PASSWORD 'shop'")
        if tenant is not None:
            assert await allow_login(owner, login, tenant)
    try:
        yield _as_login(dsn, login)
    finally:
        async with connected(dsn) as owner:
            await owner.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = $1",
                login,
            )
            await owner.execute(f"DROP OWNED BY {login}; DROP ROLE {login}")


def login_in(dsn: str) -> str:
    return urlsplit(dsn).netloc.partition(":")[0]


def _as_login(dsn: str, login: str) -> str:
    parts = urlsplit(dsn)
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{login}:shop@{place}"))
