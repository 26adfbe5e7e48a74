"""The second wall: what a tenant's connection sees when a statement forgets to say whose rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import asyncpg
import pytest
from tests.postgres import Server, fresh_database
from tests.store.rows import SHARD, new_job

from fairway.core.errors import Unavailable
from fairway.core.ids import TenantId
from fairway.core.server_processes import WHOLE
from fairway.services.database_proofs import prove_row_security
from fairway.store.connections import row_security_proof
from fairway.store.connections.database import Connection, Database
from fairway.store.connections.row_security import (
    SERVER,
    TABLES,
    TENANT,
    TENANTS_MAY,
    make_roles,
    missing_grants,
)
from fairway.store.postgres.initdb import ROLE
from fairway.store.schema.migrate import migrate, migrate_at
from fairway.store.schema.partitions import make_ahead
from fairway.store.submissions import KeyClaim, claim_keys, insert_jobs

OURS, THEIRS = TenantId(1), 2

#: A row of each tenant in every table that has rows of tenants, beside `jobs` and `idempotency`.
ROWS = """
INSERT INTO tenants (id, name) VALUES (1, 'ours'), (2, 'theirs');
INSERT INTO shards (shard) VALUES (0) ON CONFLICT DO NOTHING;
INSERT INTO api_keys (id, scope, tenant, secret_hash)
    SELECT 'k' || t, 'tenant', t, '\\x00' FROM generate_series(1, 2) AS t;
INSERT INTO job_types (name) VALUES ('work');
INSERT INTO tenant_types (tenant, type, by_worker)
    SELECT t, (SELECT max(id) FROM job_types), false FROM generate_series(1, 2) AS t;
"""


@pytest.fixture
async def filled(database: Database) -> Database:
    async with database.hot() as connection:
        await insert_jobs(connection, SHARD, [new_job(tenant=t) for t in (OURS, THEIRS, THEIRS)])
        await claim_keys(
            connection,
            SHARD,
            [KeyClaim(TenantId(t), "k", b"h", new_job().id) for t in (OURS, THEIRS)],
        )
    async with database.upkeep() as connection:
        await connection.execute(ROWS)
    return database


async def tables_with_tenants(connection: Connection) -> list[str]:
    rows = await connection.fetch(
        f"SELECT name FROM ({row_security_proof._PRESENT}) AS t WHERE has_tenants"
    )
    return [row["name"] for row in rows]


async def test_a_table_that_comes_later_is_not_forgotten(connection: Connection) -> None:
    rows = await connection.fetch(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        " AND relkind IN ('r', 'p') AND relname !~ '^(jobs|job_logs|event_log)_[0-9]'"
    )
    assert {row["relname"] for row in rows} == set(TABLES)


async def test_every_table_with_rows_of_tenants_has_a_policy(connection: Connection) -> None:
    rows = await connection.fetch(
        "SELECT tablename FROM pg_policies JOIN pg_class c ON c.oid = tablename::regclass"
        " WHERE c.relrowsecurity AND 'public' = ANY(roles) AND cmd = 'ALL'"
    )
    days = ("jobs_", "job_logs_", "event_log_")
    tables = {one for one in await tables_with_tenants(connection) if not one.startswith(days)}
    assert {row["tablename"] for row in rows} == tables | {"shards"}
    assert "jobs_carried" not in TENANTS_MAY


@pytest.mark.parametrize("use", ["quick", "slow", "asked"])
async def test_a_question_that_forgets_whose_rows_sees_ones_own(filled: Database, use: str) -> None:
    async with getattr(filled, use)(OURS) as connection:
        for table, may in TENANTS_MAY.items():
            if "SELECT" in may and table in await tables_with_tenants(connection):
                whose = "id" if table == "tenants" else "tenant"
                rows = await connection.fetch(f"SELECT {whose} FROM {table}")
                assert {row[whose] for row in rows} <= {OURS}, table
        assert await connection.fetchval("SELECT count(*) FROM jobs") == 1
        assert await connection.fetchval("SELECT count(*) FROM tenants") == 1
        updated = await connection.execute("UPDATE jobs SET priority = 9")
        assert updated == "UPDATE 1"
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute("DELETE FROM jobs")
    async with filled.people() as connection:
        assert await connection.fetchval("SELECT count(*) FROM jobs WHERE priority = 9") == 1
        assert await connection.fetchval("SELECT count(*) FROM jobs") == 3


async def test_the_same_connection_asks_for_the_next_tenant_as_that_one(database_url: str) -> None:
    database = await Database.open(database_url, sizes=WHOLE._replace(people=1))
    try:
        async with database.hot() as connection:
            jobs = [new_job(tenant=t) for t in (OURS, THEIRS, THEIRS)]
            await insert_jobs(connection, SHARD, jobs)
        counts = []
        for tenant in (OURS, THEIRS, 3, OURS):
            async with database.quick(TenantId(tenant)) as connection:
                counts.append(await connection.fetchval("SELECT count(*) FROM jobs"))
        async with database.people() as connection:
            counts.append(await connection.fetchval("SELECT count(*) FROM jobs"))
        assert counts == [1, 2, 0, 1, 3]
    finally:
        database.terminate()


async def test_a_tenants_connection_locks_a_shard_and_changes_none(filled: Database) -> None:
    async with filled.quick(OURS) as connection:
        await connection.execute("SELECT FROM shards FOR KEY SHARE")
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
            await connection.execute("UPDATE shards SET shard = shard")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute("UPDATE shards SET term = 99")


async def test_a_tenants_connection_writes_no_row_of_another(filled: Database) -> None:
    async with filled.quick(OURS) as connection:
        await connection.execute("INSERT INTO pauses (tenant, type, pool) VALUES (1, 1, 0)")
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
            await connection.execute("INSERT INTO pauses (tenant, type, pool) VALUES (2, 1, 0)")


@pytest.mark.parametrize("secret", ["api_keys", "cluster", "sessions", "jobs_carried"])
async def test_a_tenants_connection_never_asks_what_is_no_tenants(
    filled: Database, secret: str
) -> None:
    async with filled.quick(OURS) as connection:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(f"SELECT FROM {secret}")


@pytest.mark.parametrize("use", ["hot", "background", "people"])
async def test_a_server_changes_no_table(filled: Database, use: str) -> None:
    async with getattr(filled, use)() as connection:
        assert await connection.fetchval("SELECT current_user") == SERVER
        for change in ("DROP TABLE webhooks", "ALTER TABLE jobs DISABLE ROW LEVEL SECURITY",
                       "CREATE TABLE mine (a int)", "DROP POLICY of_tenant ON jobs"):  # fmt: skip
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(change)


# -- the proof -----------------------------------------------------------------------------------


async def test_a_server_starts_behind_its_walls(filled: Database) -> None:
    await prove_row_security(filled)


@pytest.mark.parametrize(
    ("breach", "said", "mend"),
    [
        (
            "ALTER TABLE jobs DISABLE ROW LEVEL SECURITY",
            "do not hold on jobs",
            "ALTER TABLE jobs ENABLE ROW LEVEL SECURITY",
        ),
        (
            "CREATE TABLE loot (tenant int); GRANT SELECT ON loot TO fairway_tenant",
            "do not hold on loot",
            "DROP TABLE loot",
        ),
        (
            "ALTER ROLE fairway_server NOBYPASSRLS",
            "ALTER ROLE fairway_server BYPASSRLS",
            "ALTER ROLE fairway_server BYPASSRLS",
        ),
        (
            "GRANT CREATE ON SCHEMA public TO fairway_tenant",
            "fairway_tenant may make tables",
            "REVOKE CREATE ON SCHEMA public FROM fairway_tenant",
        ),
        (
            "CREATE TABLE loot (); ALTER TABLE loot OWNER TO fairway_server",
            "fairway_server owns tables",
            "DROP TABLE loot",
        ),
        (
            "CREATE POLICY opened ON jobs FOR SELECT TO fairway_tenant USING (tenant > 0)",
            "DROP POLICY opened ON jobs",
            "DROP POLICY opened ON jobs",
        ),
        (
            "ALTER POLICY of_tenant ON schedules USING (true)",
            "DROP POLICY of_tenant ON schedules; .*CREATE POLICY of_tenant ON schedules",
            "ALTER POLICY of_tenant ON schedules USING (tenant = current_tenant())",
        ),
        (
            "GRANT SELECT (secret) ON cluster TO PUBLIC",
            "fairway_tenant may read cluster",
            "REVOKE ALL ON cluster FROM PUBLIC",
        ),
        (
            "GRANT INSERT, UPDATE, DELETE ON api_keys TO fairway_tenant",
            "may remove from, add to, change api_keys; REVOKE DELETE, INSERT, UPDATE ON api_keys",
            "REVOKE INSERT, UPDATE, DELETE ON api_keys FROM fairway_tenant",
        ),
        (
            "GRANT UPDATE (weight) ON tenants TO PUBLIC",
            "may change tenants; REVOKE UPDATE ON tenants FROM PUBLIC",
            "REVOKE UPDATE ON tenants FROM PUBLIC",
        ),
        (
            "ALTER POLICY of_tenant ON pauses WITH CHECK (true)",
            "DROP POLICY of_tenant ON pauses",
            "DROP POLICY of_tenant ON pauses;"
            " CREATE POLICY of_tenant ON pauses USING (tenant = current_tenant())",
        ),
        (
            "CREATE ROLE report_readers; GRANT report_readers TO fairway_tenant;"
            " CREATE POLICY reports ON jobs TO report_readers USING (true)",
            "DROP POLICY reports ON jobs",
            "DROP POLICY reports ON jobs; DROP ROLE report_readers",
        ),
        (
            "CREATE VIEW all_jobs AS SELECT * FROM jobs; GRANT SELECT ON all_jobs TO PUBLIC",
            "may look through the view all_jobs",
            "DROP VIEW all_jobs",
        ),
    ],
)
async def test_a_breach_is_told_and_nothing_starts(
    filled: Database, breach: str, said: str, mend: str
) -> None:
    async with filled.upkeep() as connection:
        await connection.execute(breach)
    try:
        with pytest.raises(Unavailable, match=said) as refusal:
            await prove_row_security(filled)
        assert refusal.value.code == "NO_ROW_SECURITY"
    finally:
        async with filled.upkeep() as connection:
            await connection.execute(mend)


async def test_what_a_role_lacks_is_given_again(owner: Connection, database: Database) -> None:
    await owner.execute(f"REVOKE ALL ON jobs, schedules FROM {SERVER}, {TENANT}")
    await owner.execute(f"REVOKE UPDATE (shard) ON shards FROM {TENANT}")  # one of many is enough
    await owner.execute(f"REVOKE USAGE ON ALL SEQUENCES IN SCHEMA public FROM {SERVER}")
    await owner.execute(f"REVOKE EXECUTE ON FUNCTION fairway_pass_over_tenants FROM {SERVER}")
    assert any("FUNCTION" in one for one in await missing_grants(owner))
    assert await migrate(owner) == []
    assert await missing_grants(owner) == []
    async with database.hot() as hot:
        await insert_jobs(hot, SHARD, [new_job(tenant=OURS)])
    async with database.quick(OURS) as asked:
        assert await asked.fetchval("SELECT count(*) FROM jobs") == 1


async def test_who_may_make_no_roles_hears_what_to_run(
    owner: Connection, database_url: str
) -> None:
    """The roles are there already; what this login lacks is that it may become one of them."""
    await owner.execute("CREATE ROLE plain LOGIN")
    plain = await asyncpg.connect(database_url.replace(f"{ROLE}@", "plain@"))
    try:
        with pytest.raises(Unavailable) as refusal:
            await make_roles(plain)
        assert refusal.value.code == "NO_ROLES"
        assert f"GRANT {SERVER}, {TENANT} TO plain" in refusal.value.message
        assert "CREATE ROLE" not in refusal.value.message
    finally:
        await plain.close()
        await owner.execute("DROP ROLE plain")


async def test_an_owner_that_is_no_superuser_makes_what_it_needs(postgres_server: Server) -> None:
    """PostgreSQL makes the maker of a role its member, and lets it not become that role."""
    async with fresh_database(postgres_server, empty=True) as dsn:
        admin = await asyncpg.connect(dsn)
        name = await admin.fetchval("SELECT current_database()")
        await admin.execute(
            "DROP ROLE IF EXISTS modest; CREATE ROLE modest LOGIN CREATEROLE BYPASSRLS"
        )
        await admin.execute(f"ALTER DATABASE {name} OWNER TO modest")
        await admin.execute(f"GRANT {SERVER}, {TENANT} TO modest WITH ADMIN TRUE, SET FALSE")
        modest_url = dsn.replace(f"{ROLE}@", "modest@")
        try:
            await migrate_at(modest_url)
            database = await Database.open(modest_url)
            await prove_row_security(database)
            async with database.hot() as connection:
                await insert_jobs(connection, SHARD, [new_job(tenant=OURS)])
            await database.close()
        finally:
            await admin.execute(
                f"DROP OWNED BY modest CASCADE; ALTER DATABASE {name} OWNER TO {ROLE}"
            )
            await admin.execute("DROP ROLE modest")
            await admin.close()


async def test_a_login_that_was_given_no_role_is_told_so(
    owner: Connection, database_url: str
) -> None:
    await owner.execute("CREATE ROLE stranger LOGIN")
    database = await Database.open(database_url.replace(f"{ROLE}@", "stranger@"))
    try:
        with pytest.raises(Unavailable, match="GRANT fairway_server, fairway_tenant") as refusal:
            await prove_row_security(database)
        assert refusal.value.code == "NO_ROW_SECURITY"
    finally:
        database.terminate()
        await owner.execute("DROP ROLE stranger")


async def test_without_roles_only_the_owner_may_serve(owner: Connection, database_url: str) -> None:
    await owner.execute(f"CREATE ROLE guest LOGIN; GRANT {SERVER} TO guest")
    guest_url = database_url.replace(f"{ROLE}@", "guest@")
    database = await Database.open(guest_url, row_security=False)
    try:
        with pytest.raises(Unavailable, match="does not own"):
            await prove_row_security(database)
    finally:
        database.terminate()
        await owner.execute("DROP ROLE guest")


async def test_without_walls_a_server_asks_as_it_logged_in(database_url: str) -> None:
    database = await Database.open(database_url, row_security=False)
    try:
        await prove_row_security(database)
        async with database.quick(OURS) as connection:
            user = await connection.fetchval("SELECT current_user")
            assert user == await connection.fetchval("SELECT session_user")
    finally:
        database.terminate()


async def test_servers_may_log_in_as_one_that_owns_nothing(
    owner: Connection, database_url: str
) -> None:
    await owner.execute(f"CREATE ROLE visitor LOGIN; GRANT {SERVER}, {TENANT} TO visitor")
    visitor_url = database_url.replace(f"{ROLE}@", "visitor@")
    database = await Database.open(visitor_url, owner_dsn=database_url)
    try:
        await prove_row_security(database)
        async with database.hot() as connection:
            await insert_jobs(connection, SHARD, [new_job(tenant=OURS) for _ in range(30)])
        async with database.upkeep() as connection:
            await make_ahead(connection, datetime.now(UTC) + timedelta(days=30))
        async with asyncpg.create_pool(visitor_url, min_size=1, max_size=1) as plain:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await plain.execute("DROP TABLE webhooks")
    finally:
        await database.close()
        await owner.execute("DROP ROLE visitor")
