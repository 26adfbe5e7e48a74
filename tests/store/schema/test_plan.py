"""What the plan says of locks is what PostgreSQL does, for every migration there is."""

from __future__ import annotations

import pytest
from tests.postgres import connected

from fairway.core.errors import Unavailable
from fairway.store.connections.database import Connection
from fairway.store.schema import migrate as migrations
from fairway.store.schema.lock_rules import MODES, UNKNOWN, effects, statements
from fairway.store.schema.migrate import (
    Applied,
    Migration,
    all_migrations,
    index_of,
    migrate,
    refuse_the_future,
)
from fairway.store.schema.plan import plan

HELD = """
SELECT c.relname, array_agg(DISTINCT l.mode) AS modes FROM pg_locks l
JOIN pg_class c ON c.oid = l.relation
WHERE l.pid = pg_backend_pid() AND c.relkind IN ('r', 'p') AND c.relname = ANY($1::text[])
GROUP BY c.relname
"""
TABLES = """
SELECT c.relname FROM pg_class c WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
AND c.relnamespace = current_schema()::regnamespace
"""
#: As PostgreSQL writes them.
WRITTEN = {mode.title().replace(" ", "") + "Lock": mode for mode in MODES}


async def held(connection: Connection, tables: list[str]) -> dict[str, str]:
    """The strongest lock of this transaction on each of these tables."""
    found = {}
    for row in await connection.fetch(HELD, tables):
        modes = [WRITTEN[mode] for mode in row["modes"] if mode in WRITTEN]
        if modes:
            found[row["relname"]] = max(modes, key=MODES.index)
    return found


async def test_the_locks_of_every_migration_are_foretold(empty_database_url: str) -> None:
    async with connected(empty_database_url) as connection:
        await migrations.pending(connection)
        wrong = {}
        for migration in all_migrations():
            if index_of(migration) is not None:
                await migrate_one(connection, migration)
                continue
            (planned, *_) = (await plan(connection)).migrations
            tables = [row["relname"] for row in await connection.fetch(TABLES)]
            async with connection.transaction():
                await connection.execute(migration.text)
                real = await held(connection, [one for one in tables if one != "migrations"])
                await note(connection, migration)
            assert planned.name == migration.name
            foretold = {table: mode for table, mode in planned.locks.items() if table in real}
            unsaid = {table for table in real if table not in planned.locks}
            if UNKNOWN not in planned.locks and (unsaid or foretold != real):
                wrong[migration.name] = (planned.locks, real)
        assert wrong == {}
        assert (await plan(connection)).migrations == []


async def note(connection: Connection, migration: Migration) -> None:
    await connection.execute(
        "INSERT INTO migrations (number, name, checksum) VALUES ($1, $2, '')",
        migration.number,
        migration.name,
    )


async def migrate_one(connection: Connection, migration: Migration) -> None:
    index = index_of(migration)
    assert index is not None
    await connection.execute(f"CREATE INDEX {index.name} ON jobs {index.definition}")
    await note(connection, migration)


def test_statements_are_told_apart() -> None:
    text = """
    -- a comment; with a semicolon
    CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1; $$;
    INSERT INTO t VALUES ('a;b', 'it''s');  -- and another
    UPDATE t SET x = 1
    """
    assert [one.split()[0] for one in statements(text)] == ["CREATE", "INSERT", "UPDATE"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ALTER TABLE jobs ADD COLUMN x int", "expand"),
        ("CREATE TABLE t (x int); ALTER TABLE t DROP COLUMN x", "expand"),
        ("ALTER TABLE jobs DROP COLUMN x", "contract"),
        ("ALTER TABLE jobs RENAME TO work", "contract"),
        ("ALTER TABLE jobs ALTER COLUMN x SET NOT NULL", "contract"),
        ("DROP TABLE events", "contract"),
        ("DROP FUNCTION f()", "contract"),
    ],
)
def test_what_takes_something_away_is_a_contraction(text: str, kind: str) -> None:
    kinds = {effect.kind for effect in effects(text)} or {"expand"}
    assert ("contract" if "contract" in kinds else "expand") == kind


NEXT = all_migrations()[-1].number + 1


def the_next(text: str) -> list[Migration]:
    return [*all_migrations(), Migration(NEXT, f"{NEXT:04}_next", text)]


async def test_a_server_starts_on_a_newer_schema_that_was_made_for_it(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And on no other: who knows nothing of a migration cannot tell what it takes away."""
    serving = f"-- serves servers from {NEXT - 1:04} on\nALTER TABLE jobs ADD COLUMN later int"
    async with connected(database_url) as connection:
        with monkeypatch.context() as patch:
            patch.setattr(migrations, "all_migrations", lambda: the_next(serving))
            found = await plan(connection)
            assert found.old_servers_start
            assert found.migrations[0].locks == {"jobs": "ACCESS EXCLUSIVE"}
            assert len(await migrate(connection)) == 1
        assert await migrate(connection) == [], "the version before"
        await connection.execute("UPDATE migrations SET serves_from = NULL WHERE number = $1", NEXT)
        with pytest.raises(Unavailable) as refusal:
            await migrate(connection)
        assert refusal.value.code == "SCHEMA_TOO_NEW"


@pytest.mark.parametrize(
    ("serves_from", "is_served"), [(None, False), (34, True), (35, False), (36, False)]
)
def test_every_migration_that_is_not_known_must_serve(
    serves_from: int | None, is_served: bool
) -> None:
    applied = [Applied(35, "35_a", 34), Applied(36, "36_b", serves_from), Applied(37, "37_c", 1)]
    if is_served:
        refuse_the_future(applied, 34)
        return
    with pytest.raises(Unavailable, match="36_b"):
        refuse_the_future(applied, 34)


async def test_who_may_not_migrate_hears_what_to_do(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = the_next("ALTER TABLE jobs ADD COLUMN later int")
    monkeypatch.setattr(migrations, "all_migrations", lambda: known)
    async with connected(database_url) as connection:
        await connection.execute("SET ROLE fairway_server")
        with pytest.raises(Unavailable, match="fairway migrate") as refusal:
            await migrate(connection, roles=False)
        assert refusal.value.code == "SCHEMA_TOO_OLD"


def test_what_is_said_to_serve_older_servers_takes_nothing_away() -> None:
    serving = [one for one in all_migrations() if one.serves_from < one.number]
    taking = {
        one.name
        for one in serving
        for effect in effects(one.text)
        if effect.kind == "contract" or effect.table == UNKNOWN
    }
    assert taking == set()
