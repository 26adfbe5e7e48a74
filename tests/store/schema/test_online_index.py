"""Indexes built beside the work: begun again after a crash, whatever was left of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.postgres import connected
from tests.store.rows import add_jobs, new_job

from fairway.store.connections.database import Connection
from fairway.store.schema import partitions
from fairway.store.schema.online_index import NewIndex, add_index, parse_index


@pytest.fixture
def connection(owner: Connection) -> Connection:
    """Tables are changed by who owns them."""
    return owner


INDEX = NewIndex("jobs_by_pool", "(shard, pool, id) WHERE state = 1")


def test_a_file_that_asks_for_an_index_does_nothing_else() -> None:
    text = "-- index: jobs_by_pool\n-- Why.\n(shard, pool, id) WHERE state = 1;\n"
    assert parse_index(text) == INDEX
    assert parse_index("CREATE TABLE t (i int); -- index: no") is None


@pytest.mark.parametrize("small_bytes", [-1, 1 << 40])
async def test_an_index_is_added_beside_the_work_and_can_be_begun_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch, small_bytes: int
) -> None:
    monkeypatch.setattr("fairway.store.schema.online_index.SMALL_BYTES", small_bytes)
    async with connected(database_url) as connection, connected(database_url) as writer:
        await add_jobs(connection, *(new_job() for _ in range(50)))
        await connection.execute(f"CREATE INDEX jobs_by_pool ON ONLY jobs {INDEX.definition}")
        if small_bytes > 0:
            await connection.execute("DROP INDEX jobs_by_pool")
        async with writer.transaction():
            await add_jobs(writer, new_job())
        for _ in range(2):
            await add_index(connection, INDEX)
        await partitions.make_ahead(connection, datetime.now(UTC) + timedelta(days=50))
        tables = await connection.fetchval(
            "SELECT count(*) FROM pg_inherits WHERE inhparent = 'jobs'::regclass"
        )
        parts = await connection.fetch(
            "SELECT indisvalid FROM pg_index JOIN pg_inherits ON inhrelid = indexrelid"
            " WHERE inhparent = 'jobs_by_pool'::regclass"
        )
        assert await connection.fetchval(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = 'jobs_by_pool'::regclass"
        )
    assert [row["indisvalid"] for row in parts] == [True] * tables


async def test_an_index_that_was_left_half_built_is_built_anew(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairway.store.schema.online_index.SMALL_BYTES", -1)
    async with connected(database_url) as connection:
        await connection.execute(
            f"CREATE INDEX jobs_carried_by_pool ON jobs_carried {INDEX.definition}"
        )
        await connection.execute(
            "UPDATE pg_index SET indisvalid = false"
            " WHERE indexrelid = 'jobs_carried_by_pool'::regclass"
        )
        await add_index(connection, INDEX)
        rows = await connection.fetch(
            "SELECT indexrelid::regclass::text AS name, indisvalid FROM pg_index"
            " WHERE indexrelid::regclass::text ~ 'by_pool'"
        )
        assert [row["name"] for row in rows if not row["indisvalid"]] == []
