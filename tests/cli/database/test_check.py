"""`fairway check`: what is wrong, all of it at once, and an exit status that scripts can use."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import asyncpg
import pytest
from tests.api.house import open_house
from tests.cli.program import fairway
from tests.postgres import open_room

from fairway.store.postgres.embedded import EmbeddedPostgres
from fairway.store.postgres.initdb import ROLE
from fairway.store.schema.migrate import migrate_at


def test_an_empty_folder_is_in_order(tmp_path: Path) -> None:
    ended = fairway(tmp_path, "check")
    assert ended.status == 0
    last = ended.out.splitlines()[-1]
    assert last.startswith("ok  The settings are as they should be. There is no database yet")
    assert list(tmp_path.iterdir()) == []


def test_a_real_database_is_looked_at(tmp_path: Path, database_url: str) -> None:
    """As it is, it is in order; with its durability turned off, `check` must say so."""
    ended = fairway(tmp_path, "check", FAIRWAY_DATABASE_URL=database_url)
    assert (ended.status, ended.err) == (0, ""), ended.out
    asyncio.run(_alter(database_url, "SET synchronous_commit = off"))
    try:
        ended = fairway(tmp_path, "check", FAIRWAY_DATABASE_URL=database_url)
    finally:  # the database is used again by other tests
        asyncio.run(_alter(database_url, "RESET synchronous_commit"))
    assert ended.status == 1
    assert "synchronous_commit" in ended.out


def test_an_empty_database_is_told_what_makes_it_one(
    tmp_path: Path, empty_database_url: str
) -> None:
    """It said neither that all is well nor what is to come next."""
    told = "There is no Fairway in this database yet.  `fairway init` makes its tables"
    ended = fairway(tmp_path, "check", FAIRWAY_DATABASE_URL=empty_database_url)
    assert ended.status == 0, "a server would make them, too"
    assert f"warning  {told}" in ended.out
    fairway(tmp_path, "init", FAIRWAY_DATABASE_URL=empty_database_url)
    assert told not in fairway(tmp_path, "check", FAIRWAY_DATABASE_URL=empty_database_url).out


def test_a_database_of_another_region_is_told(tmp_path: Path, database_url: str) -> None:
    """A server would start there, own nothing, and let all jobs stand still."""
    found = "INSERT INTO region_state (region, directory, directory_term) VALUES ('us', 'us', 1)"
    asyncio.run(_run(database_url, [found]))
    named = {
        "FAIRWAY_REGION": "eu",
        "FAIRWAY_REGIONS": "eu=http://127.0.0.1:1;us=http://127.0.0.1:2",
        "FAIRWAY_REGION_SECRET": "one secret of all regions",
        "FAIRWAY_DATABASE_URL": database_url,
    }
    try:
        ended = fairway(tmp_path, "check", **named)
        served = fairway(tmp_path, "server", "--port", "1", **named)
    finally:
        asyncio.run(_run(database_url, ["DELETE FROM region_state"]))
    assert ended.status == 1
    assert "This database is the region 'us', and FAIRWAY_REGION is 'eu'" in ended.out
    assert (served.status, "This database is the region 'us'" in served.err) == (1, True)


def test_another_number_of_shards_than_there_are_is_told(tmp_path: Path, database_url: str) -> None:
    """Only to who asked for one: it counts when a database is founded, and then no more."""
    founded = "INSERT INTO cluster (shard_count, secret) VALUES (4, 'x')"
    asyncio.run(_run(database_url, [founded]))
    try:
        told = [
            fairway(tmp_path, "check", FAIRWAY_DATABASE_URL=database_url, **asked)
            for asked in ({}, {"FAIRWAY_SHARD_COUNT": "4"}, {"FAIRWAY_SHARD_COUNT": "32"})
        ]
    finally:
        asyncio.run(_run(database_url, ["DELETE FROM cluster"]))
    assert [ended.status for ended in told] == [0, 0, 0], "it is a warning"
    assert ["SHARD_COUNT" in ended.out for ended in told] == [False, False, True]
    assert "this database has 4 shards" in told[2].out
    assert "`fairway shards split --to 32`" in told[2].out


async def _alter(database_url: str, change: str) -> None:
    connection = await asyncpg.connect(database_url)
    name = await connection.fetchval("SELECT current_database()")
    await connection.execute(f"ALTER DATABASE {name} {change}")
    await connection.close()


#: What somebody did to the walls, what is said, and what it says to run.
BREACHES = [
    (
        "REVOKE UPDATE ON jobs FROM fairway_server",
        "may not do what they must: UPDATE ON jobs TO fairway_server.",
        "GRANT UPDATE ON jobs TO fairway_server;",
    ),
    (
        "CREATE POLICY for_reports ON schedules USING (true)",
        "shows other rows of schedules than a tenant's own",
        "DROP POLICY for_reports ON schedules",
    ),
    (
        "DROP POLICY of_tenant ON webhooks",
        "webhooks has no policy that shows a tenant its own rows",
        "CREATE POLICY of_tenant ON webhooks USING (tenant = current_tenant())",
    ),
    (
        "ALTER TABLE pauses DISABLE ROW LEVEL SECURITY",
        "policies do not hold on pauses",
        "ALTER TABLE pauses ENABLE ROW LEVEL SECURITY",
    ),
    (
        "GRANT SELECT ON cluster TO fairway_tenant",
        "the role fairway_tenant may read cluster",
        "REVOKE SELECT ON cluster FROM PUBLIC, fairway_tenant",
    ),
]


def test_roles_grants_and_policies_are_looked_at(tmp_path: Path, database_url: str) -> None:
    """All breaches at once, each with what to run; after that has been run, all is well."""
    given = {"FAIRWAY_DATABASE_URL": database_url}
    asyncio.run(_run(database_url, [breach for breach, _, _ in BREACHES]))
    try:
        ended = fairway(tmp_path, "check", **given)
    finally:  # the database is used again by other tests
        asyncio.run(_run(database_url, [mend for _, _, mend in BREACHES]))
    words = " ".join(ended.out.split())
    assert (ended.status, ended.err) == (1, ""), ended
    assert [text for _, *texts in BREACHES for text in texts if text not in words] == [], words
    ended = fairway(tmp_path, "check", **given)
    assert (ended.status, ended.err) == (0, ""), ended.out


async def _run(database_url: str, statements: list[str]) -> None:
    """All of them, or none: the database is used again by other tests."""
    connection = await asyncpg.connect(database_url)
    async with connection.transaction():
        for statement in statements:
            await connection.execute(statement)
    await connection.close()


def test_a_login_that_may_make_no_roles_is_told_before_it_upgrades(
    tmp_path: Path, database_url: str
) -> None:
    """An owner, or a login of servers, to whom nobody has given the roles yet."""
    asyncio.run(_run(database_url, ["CREATE ROLE checked LOGIN"]))
    theirs = {"FAIRWAY_DATABASE_URL": database_url.replace(f"{ROLE}@", "checked@")}
    step = "GRANT fairway_server, fairway_tenant TO checked;"
    try:
        ended = fairway(tmp_path, "check", **theirs)
        servers = fairway(tmp_path, "check", **theirs, FAIRWAY_OWNER_DATABASE_URL=database_url)
    finally:
        asyncio.run(_run(database_url, ["DROP ROLE checked"]))
    assert (ended.status, step in " ".join(ended.out.split())) == (1, True), ended
    assert servers.status == 1
    assert "GRANT fairway_server, fairway_tenant to the login" in " ".join(servers.out.split())


def test_a_database_that_is_away_is_named(tmp_path: Path, database_url: str) -> None:
    """With what to do, and no word at the end that sounds as if all were well."""
    is_up = "It is up, and refuses this login"
    for dsn, what, remedy in (
        (
            "postgresql://127.0.0.1:1/nowhere",
            "at 127.0.0.1:1/nowhere: ",
            "Is it up, and is FAIRWAY",
        ),
        ("mysql://127.0.0.1/x", "begins with postgresql://, and this one has mysql://.", "Write"),
        (database_url.replace(f"{ROLE}@", "none@"), ': role "none" does not exist.', is_up),
        (re.sub(r"@/\w+", "@/none", database_url), "does not exist.", "with CREATE DATABASE"),
    ):
        ended = fairway(tmp_path, "check", "--database-url", dsn)
        first, *_, last = ended.out.splitlines()
        assert ended.status == 1
        assert first.startswith("error  No connection to the database at "), first
        assert (what in first, remedy in first) == (True, True), first
        assert last.startswith("error  Without a connection to the database"), last
        assert "Traceback" not in ended.out + ended.err


def test_object_storage_is_tried(tmp_path: Path, database_url: str) -> None:
    good, bad = tmp_path / "objects", tmp_path / "a file"
    bad.write_text("no folder")
    given = {"FAIRWAY_DATABASE_URL": database_url}
    ended = fairway(tmp_path, "check", **given, FAIRWAY_STORAGE_URL=f"file://{good}")
    assert ended.status == 0, ended.out
    ended = fairway(tmp_path, "check", **given, FAIRWAY_STORAGE_URL=f"file://{bad}")
    assert ended.status == 1
    assert "Object storage does not answer" in ended.out
    ended = fairway(tmp_path, "check", **given, FAIRWAY_STORAGE_URL="nonsense://x")
    assert (ended.status, "FAIRWAY_STORAGE_URL" in ended.out) == (1, True), ended.out


def test_a_storage_that_is_not_the_databases_is_told(tmp_path: Path, database_url: str) -> None:
    """The default folder too: each server that is given none has its own."""
    given = {"FAIRWAY_DATABASE_URL": database_url}
    first, second = tmp_path / "first", tmp_path / "second"
    with open_house(database_url, data_dir=first):
        ended = fairway(tmp_path, "check", **given, FAIRWAY_DATA_DIR=str(first))
        assert ended.status == 0, ended.out
        ended = fairway(tmp_path, "check", **given, FAIRWAY_DATA_DIR=str(second))
    words = " ".join(ended.out.split())
    assert (ended.status, "the same FAIRWAY_STORAGE_URL" in words) == (1, True), ended.out
    assert not second.exists()


def test_beside_a_fairway_that_runs(tmp_path: Path) -> None:
    """The moment when somebody needs it: it looks at what runs, and leaves it running."""
    with open_room() as room:
        words = asyncio.run(_checked_beside(tmp_path, room))
    assert words[-1].startswith("ok"), words


async def _checked_beside(tmp_path: Path, room: Path) -> list[str]:
    postgres = EmbeddedPostgres(room / "postgres")
    dsn = await postgres.start(print)
    try:
        await migrate_at(dsn)
        ended = await asyncio.to_thread(fairway, tmp_path, "check", FAIRWAY_DATA_DIR=str(room))
        assert (ended.status, ended.err) == (0, ""), ended
        connection = await asyncpg.connect(dsn)
        await connection.close()
    finally:
        await postgres.stop()
    return ended.out.splitlines()


def test_wrong_settings_are_all_told_at_once(tmp_path: Path) -> None:
    ended = fairway(
        tmp_path, "check", FAIRWAY_TERM_SECONDS="0.1", FAIRWAY_LEASE_SECONDS="huge=3",
        FAIRWAY_SHARD_COUNT="0",
    )  # fmt: skip
    assert ended.status == 1
    for name in ("FAIRWAY_TERM_SECONDS", "FAIRWAY_LEASE_SECONDS", "FAIRWAY_SHARD_COUNT"):
        assert name in ended.out


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("FAIRWAY_PORTT", "1", "There is no setting FAIRWAY_PORTT. Did you mean FAIRWAY_PORT?"),
        ("FAIRWAY_PORT", "many", "FAIRWAY_PORT is 'many', which is no int."),
        ("FAIRWAY_LEASE_SECONDS", "short", "FAIRWAY_LEASE_SECONDS is 'short', which is no"),
    ],
)
def test_a_setting_that_cannot_be_read_is_one_sentence(
    tmp_path: Path, name: str, value: str, words: str
) -> None:
    ended = fairway(tmp_path, "check", **{name: value})
    assert ended.status == 1
    assert ended.err.startswith(f"fairway: {words}")
    assert len(ended.err.splitlines()) == 1
