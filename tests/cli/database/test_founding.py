"""`fairway init`: an empty PostgreSQL becomes a platform, once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.program import fairway
from tests.postgres import connected, in_thread

from fairway.cli.database import founding
from fairway.core.keys import ApiKey
from fairway.runtime.settings import Settings


def test_an_empty_database_is_made_ready_once(tmp_path: Path, empty_database_url: str) -> None:
    made = fairway(tmp_path, "init", FAIRWAY_DATABASE_URL=empty_database_url)
    assert made.status == 0, made
    key = ApiKey.parse(made.out.strip())  # nothing else on standard output
    assert key is not None
    assert key.scope == "operator"
    assert "migrations applied" in made.err
    assert "FAIRWAY_API_KEY" in made.err, "where workers take theirs from"
    again = fairway(tmp_path, "init", FAIRWAY_DATABASE_URL=empty_database_url)
    assert (again.status, again.out) == (0, "")
    assert "up to date" in again.err
    assert "`fairway operator-key` makes another" in again.err
    assert fairway(tmp_path, "init").err.startswith("fairway: Set FAIRWAY_DATABASE_URL,")
    walled = fairway(tmp_path, "init", "--distributed", FAIRWAY_DATABASE_URL=empty_database_url)
    assert "Set FAIRWAY_ROW_SECURITY=false" in walled.err, "before anything is changed"
    more = fairway(tmp_path, "operator-key", FAIRWAY_DATABASE_URL=empty_database_url)
    second = ApiKey.parse(more.out.strip())
    assert second is not None
    lines = in_thread(_audited(empty_database_url))
    assert [line[:3] for line in lines] == [
        ("command", "add_key", key.id), ("command", "add_key", second.id),
    ]  # fmt: skip
    assert all(person and machine for *_, person, machine in lines)


def test_a_number_of_shards_that_is_set_is_founded_once(
    tmp_path: Path, empty_database_url: str
) -> None:
    """It was left to the first server, by whatever was set where that one started."""

    def init(**settings: str) -> str:
        made = fairway(tmp_path, "init", FAIRWAY_DATABASE_URL=empty_database_url, **settings)
        assert made.status == 0, made
        return made.err

    assert "shards" not in init().lower()
    assert in_thread(_shards(empty_database_url)) == (None, 0), "left to the first server"
    assert "Shards: 3." in init(FAIRWAY_SHARD_COUNT="3")
    assert "FAIRWAY_SHARD_COUNT is 5, and this database has 3" in init(FAIRWAY_SHARD_COUNT="5")
    assert "shards" not in init().lower(), "the default is no wish"
    assert in_thread(_shards(empty_database_url)) == (3, 3)


def test_a_region_that_is_not_the_directory_is_told_where_tenants_are_made(
    tmp_path: Path, empty_database_url: str
) -> None:
    """The commands that it was advised to use are refused there."""
    regions = {"FAIRWAY_REGIONS": "eu=http://127.0.0.1:1;us=http://127.0.0.1:2"}
    asked = {"FAIRWAY_DATABASE_URL": empty_database_url, "FAIRWAY_REGION": "us"} | regions
    told = fairway(tmp_path, "init", **asked).err
    assert "fairway tenants add" not in told
    assert "are made in the directory, which\nis eu unless a failover changed that" in told
    of_eu = Settings(region="eu", regions=regions["FAIRWAY_REGIONS"])
    assert founding._next(of_eu) == founding._next(Settings()) == founding.NEXT


@pytest.mark.parametrize("count", ["0", "99999"])
def test_a_number_of_shards_that_cannot_be_is_refused_first(
    tmp_path: Path, empty_database_url: str, count: str
) -> None:
    """The schema was made, and then the row of the cluster quoted, with its secret."""
    settings = {"FAIRWAY_DATABASE_URL": empty_database_url, "FAIRWAY_SHARD_COUNT": count}
    refused = fairway(tmp_path, "init", **settings, FAIRWAY_HOST="0.0.0.0")
    told = f"FAIRWAY_SHARD_COUNT must be from 1 to 4096, not {count}."
    assert refused == (1, "", f"fairway: The settings are not right:\n  {told}\n")
    assert in_thread(_tables(empty_database_url)) == 0


async def _tables(dsn: str) -> int:
    async with connected(dsn) as connection:
        found: int = await connection.fetchval(
            "SELECT count(*)::int FROM pg_tables WHERE schemaname = 'public'"
        )
    return found


async def _shards(dsn: str) -> tuple[int | None, int]:
    async with connected(dsn) as connection:
        row = await connection.fetchrow(
            "SELECT (SELECT shard_count FROM cluster), (SELECT count(*)::int FROM shards)"
        )
    return row[0], row[1]


async def _audited(dsn: str) -> list[tuple[str, ...]]:
    async with connected(dsn) as connection:
        rows = await connection.fetch(
            "SELECT actor, action, subject, actor_name, address FROM audit ORDER BY id"
        )
    return [tuple(row) for row in rows]
