"""`fairway sql-login`: an operator says which login hands in whose jobs."""

from __future__ import annotations

import secrets
from pathlib import Path

import asyncpg
import pytest
from tests.cli.program import fairway
from tests.postgres import connected

from fairway.store.registry import tenants

REQUEST = '{"type": "a"}'


async def test_a_login_hands_in_jobs_of_one_tenant_until_it_is_taken_back(
    tmp_path: Path, database_url: str, empty_database_url: str
) -> None:
    login = f"Shop {secrets.token_hex(4)}"
    given = {"FAIRWAY_DATABASE_URL": database_url}
    missing = fairway(tmp_path, "sql-login", "acme", login, **given)
    assert "There is no tenant acme; nothing was changed." in missing.err
    async with connected(database_url) as owner:
        await tenants.found_cluster(owner, 1, "secret")
        await tenants.add_tenant(owner, "acme")
    assert "CREATE ROLE" in fairway(tmp_path, "sql-login", "acme", login, **given).err
    async with connected(database_url) as owner:
        await owner.execute(f'CREATE ROLE "{login}" LOGIN')
        try:
            await owner.execute(f'GRANT CREATE ON SCHEMA public TO "{login}"')
            made = fairway(tmp_path, "sql-login", "acme", login, **given)
            assert made.out == f"{login} hands in jobs of acme with its transactions.\n", made
            assert "REVOKE CREATE ON SCHEMA" in made.err
            await owner.execute(f'SET SESSION AUTHORIZATION "{login}"')
            assert await owner.fetchval("SELECT fairway_enqueue($1)", REQUEST)
            assert fairway(tmp_path, "sql-login", "acme", login, "--remove", **given).status == 0
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await owner.fetchval("SELECT fairway_enqueue($1)", REQUEST)
            again = fairway(tmp_path, "sql-login", "acme", login, "--remove", **given)
            assert (again.status, again.out) == (1, "")
            await owner.execute("RESET SESSION AUTHORIZATION")
            lines = await owner.fetch(
                "SELECT action, subject, actor_kind, tenant FROM audit ORDER BY id"
            )
            assert [tuple(line) for line in lines] == [
                ("add_sql_login", login, "command", 1),
                ("remove_sql_login", login, "command", 1),
            ], "what was refused has none"
        finally:
            await owner.execute("RESET SESSION AUTHORIZATION")
            await owner.execute(f'DROP OWNED BY "{login}"; DROP ROLE "{login}"')
    elsewhere = fairway(
        tmp_path, "sql-login", "acme", login, FAIRWAY_DATABASE_URL=empty_database_url
    )
    assert "`fairway init` makes it ready" in elsewhere.err
    assert "Set FAIRWAY_DATABASE_URL" in fairway(tmp_path, "sql-login", "acme", login).err
