"""A database from before row security comes to the present with every row, while others use it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest
from tests.postgres import connected
from tests.store.rows import add_jobs, new_job

from fairway.core.errors import Unavailable
from fairway.core.ids import TenantId
from fairway.services.database_proofs import prove_row_security
from fairway.store.connections.database import Connection, Database
from fairway.store.connections.row_security import TENANTS_MAY
from fairway.store.postgres.initdb import ROLE
from fairway.store.schema.migrate import all_migrations, migrate, migrate_at

OURS, THEIRS = TenantId(1), 2
BEFORE = [one for one in all_migrations() if one.number <= 11]
SINCE = all_migrations()[len(BEFORE) :]

#: A row of each tenant in every table that has rows of tenants, beside `jobs`; and one in the rest.
ROWS = """
INSERT INTO cluster (shard_count, secret) VALUES (1, 'secret');
INSERT INTO shards (shard, term) VALUES (0, 7);
INSERT INTO tenants (name) VALUES ('ours'), ('theirs');
INSERT INTO job_types (name, registered_at) VALUES ('work', now()), ('by.hand', NULL);
INSERT INTO audit (actor, action, subject, detail) VALUES ('op', 'put_job_type', 'by.hand', '');
INSERT INTO sessions VALUES (0, gen_random_uuid(), 'w', now());
INSERT INTO api_keys (id, scope, tenant, secret_hash)
    SELECT 'k' || t, 'tenant', t, '\\x00' FROM generate_series(1, 2) AS t;
INSERT INTO idempotency SELECT 0, t, 'key', '\\x00', gen_random_uuid(), now() + '1 day'
    FROM generate_series(1, 2) AS t;
INSERT INTO pauses (tenant, type) SELECT t, 1 FROM generate_series(1, 2) AS t;
INSERT INTO fair_share SELECT 0, 1, t, 500 FROM generate_series(1, 2) AS t;
INSERT INTO circuits SELECT t, 1, 'bank', 1000, now() FROM generate_series(1, 2) AS t;
INSERT INTO quarantines SELECT t, 1 FROM generate_series(1, 2) AS t;
INSERT INTO events (tenant, kind, subject, detail)
    SELECT t, 'paused', 'work', '' FROM generate_series(1, 2) AS t;
INSERT INTO dead_letter_actions
    (shard, tenant, id, kind, since, before, per_second, matched, cursor)
    SELECT 0, t, u, 'replay', u, u, 1, 1, u
    FROM generate_series(1, 2) AS t, LATERAL (SELECT gen_random_uuid() AS u) AS one;
INSERT INTO schedules (shard, tenant, name, cron, zone, type, pool, priority, payload, jitter_ms,
                       starts_at, overlap, catch_up, window_ms, paused, source, handled_at)
    SELECT 0, t, 'nightly', '0 3 * * *', 'UTC', 1, 1, 5, '{}', 0, now(), 0, 0, 0, true, 'api', now()
    FROM generate_series(1, 2) AS t;
INSERT INTO schedule_runs (shard, tenant, name, tick, cause, outcome, job)
    SELECT 0, t, 'nightly', now(), 0, 0, gen_random_uuid() FROM generate_series(1, 2) AS t;
INSERT INTO checkpoints (shard, tenant, job, epoch, number, object, size_bytes, sha256)
    SELECT 0, t, gen_random_uuid(), 1, 1, 'o', 1, '\\x00' FROM generate_series(1, 2) AS t;
"""

#: What a server of the version before says, as the owner of the tables, many times a second.
OLD_WORDS = (
    "SELECT id FROM jobs WHERE shard = 0 AND tenant = 1",
    "UPDATE jobs SET priority = 6 WHERE shard = 0 AND tenant = 1",
    "INSERT INTO job_types (name) VALUES ('late') ON CONFLICT (name) DO NOTHING",
    "SELECT id, scope, tenant, secret_hash FROM api_keys WHERE id = 'k1'",
    "UPDATE shards SET expires_at = now() WHERE shard = 0",
)

Rows = dict[str, list[str]]
#: Tables that have another name since.
RENAMED = {"dead_letter_actions": "bulk_actions"}
NOTICES = "events"  # a table of before the event log; what is in it goes there


@pytest.fixture
async def old(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Connection]:
    """The owner's connection to a database as the version before left it, full of rows."""
    async with connected(empty_database_url) as connection:
        with monkeypatch.context() as patch:
            patch.setattr("fairway.store.schema.migrate.all_migrations", lambda: BEFORE)
            await migrate(connection, roles=False)
        await connection.execute(ROWS)
        await add_jobs(connection, *(new_job(tenant=t) for t in (OURS, THEIRS) for _ in range(3)))
        yield connection


def now_called(tables: dict[str, list[str]]) -> dict[str, list[str]]:
    found = {RENAMED.get(table, table): names for table, names in tables.items()}
    del found[NOTICES]
    acts = ["act" if name == "kind" else name for name in found["bulk_actions"]]
    return found | {"bulk_actions": acts}


async def columns(connection: Connection) -> dict[str, list[str]]:
    """Of each table that has rows in itself, days of jobs apart."""
    rows = await connection.fetch(
        "SELECT relname, array_agg(attname::text) AS names FROM pg_class"
        " JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped"
        " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
        " AND relname NOT IN ('migrations', 'jobs_carried') GROUP BY relname"
    )
    return {row["relname"]: row["names"] for row in rows}


async def content(connection: Connection, tables: dict[str, list[str]]) -> Rows:
    """Every row with these columns, as text; terms are changed by whoever owns a shard."""
    found: Rows = {}
    for table, names in tables.items():
        kept = ", ".join(name for name in names if name not in ("expires_at", "priority"))
        rows = await connection.fetch(f"SELECT t::text FROM (SELECT {kept} FROM {table}) AS t")
        found[table] = sorted(row["t"] for row in rows)
    return found


async def test_every_row_comes_through_and_the_wall_stands(
    old: Connection, empty_database_url: str
) -> None:
    tables = await columns(old)
    before = await content(old, tables)
    assert [table for table, rows in before.items() if not rows] == []
    assert await migrate_at(empty_database_url) == SINCE
    tables = now_called(tables)
    assert len(before.pop(NOTICES)) == await old.fetchval("SELECT count(*) FROM event_inbox")
    assert await content(old, tables) == {RENAMED.get(t, t): rows for t, rows in before.items()}
    house = await old.fetch("SELECT name FROM job_types WHERE shared ORDER BY name")
    by_hand = await old.fetch("SELECT name FROM job_types WHERE by_hand")
    assert ([row[0] for row in house], [row[0] for row in by_hand]) == (["work"], ["by.hand"])
    database = await Database.open(empty_database_url)
    try:
        await prove_row_security(database)
        async with database.quick(OURS) as asked:
            for table in sorted({*TENANTS_MAY} & {t for t in tables if "tenant" in tables[t]}):
                rows = await asked.fetch(f"SELECT tenant FROM {table}")
                assert {row["tenant"] for row in rows} == {OURS}, table
            assert await asked.fetchval("SELECT count(*) FROM tenants") == 1
    finally:
        database.terminate()


async def test_a_server_of_the_version_before_goes_on_and_does_not_start_again(
    old: Connection, empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It speaks all the time; what it says is done, before, during and after."""
    is_over, said = asyncio.Event(), 0

    async def work() -> int:
        spoken = 0
        async with connected(empty_database_url) as server:
            while not is_over.is_set() or spoken < 2:
                for words in OLD_WORDS:
                    await server.fetch(words)  # prepared, and kept prepared
                await add_jobs(server, new_job(tenant=OURS))
                spoken += 1
        return spoken

    working = asyncio.create_task(work())
    try:
        assert await migrate_at(empty_database_url) == SINCE
    finally:
        is_over.set()
        said = await working
    assert await old.fetchval("SELECT count(*) FROM jobs WHERE tenant = 1") == 3 + said
    assert await old.fetchval("SELECT count(*) FROM job_types WHERE name = 'late'") == 1
    with monkeypatch.context() as patch:
        patch.setattr("fairway.store.schema.migrate.all_migrations", lambda: BEFORE)
        with pytest.raises(Unavailable, match=SINCE[-1].name) as refusal:
            await migrate_at(empty_database_url, roles=False)
    assert refusal.value.code == "SCHEMA_TOO_NEW"


async def test_an_old_servers_transaction_is_waited_for(
    old: Connection, empty_database_url: str
) -> None:
    reasons: list[str] = []
    ending: list[asyncio.Task[None]] = []
    async with connected(empty_database_url) as server:
        writing = server.transaction()
        await writing.start()
        await add_jobs(server, new_job(tenant=OURS))
        await server.execute("UPDATE tenants SET updated_at = now()")

        def say(reason: str) -> None:
            reasons.append(reason)
            if not ending:
                ending.append(asyncio.create_task(writing.commit()))

        assert await migrate_at(empty_database_url, say) == SINCE
    assert "waits for a lock" in reasons[0]
    assert await old.fetchval("SELECT count(*) FROM jobs WHERE tenant = 1") == 4


async def test_a_login_without_roles_is_refused_before_anything_is_changed(
    old: Connection, empty_database_url: str
) -> None:
    await old.execute(
        "CREATE ROLE late LOGIN; GRANT CREATE, USAGE ON SCHEMA public TO late;"
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO late"
    )
    tables = await columns(old)
    try:
        with pytest.raises(Unavailable, match=r"GRANT .* TO late") as refusal:
            await migrate_at(empty_database_url.replace(f"{ROLE}@", "late@"))
        assert refusal.value.code == "NO_ROLES"
        assert await columns(old) == tables
        assert await old.fetchval("SELECT max(number) FROM migrations") == len(BEFORE)
    finally:
        await old.execute("DROP OWNED BY late; DROP ROLE late")


async def test_others_who_read_the_tables_see_no_rows_of_tenants_afterwards(
    old: Connection, empty_database_url: str
) -> None:
    """As OPERATING says of dashboards."""
    await old.execute("CREATE ROLE dashboard LOGIN; GRANT SELECT ON jobs, pools TO dashboard")
    try:
        async with asyncpg.create_pool(
            empty_database_url.replace(f"{ROLE}@", "dashboard@"), min_size=1, max_size=1
        ) as reports:
            assert await reports.fetchval("SELECT count(*) FROM jobs") == 6
            await migrate_at(empty_database_url)
            assert await reports.fetchval("SELECT count(*) FROM jobs") == 0
            assert await reports.fetchval("SELECT count(*) FROM pools") == 3
    finally:
        await old.execute("DROP OWNED BY dashboard; DROP ROLE dashboard")
