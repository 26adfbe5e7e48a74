"""The store over several nodes: the texts that are turned, and on a cluster how they are run.

With FAIRWAY_TEST_CITUS_URL, the address of an empty database of a Citus coordinator with nodes, the
second half founds and distributes it and runs the way of a job on it.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from importlib import resources
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from fairway.core.ids import Epoch, JobId, PoolId, ShardId, TenantId, TypeId
from fairway.core.job import QueuedJob
from fairway.core.run.lease import next_epoch
from fairway.services.transient_errors import refusal_of
from fairway.store import leadership, outcomes, submissions
from fairway.store.billing import usage
from fairway.store.connections.database import (
    DISCONNECTED,
    ID_TAKEN,
    UNDONE,
    Connection,
    Database,
)
from fairway.store.connections.error_classes import is_about_rows
from fairway.store.connections.hosts import connect_for_once
from fairway.store.connections.node_errors import as_said
from fairway.store.connections.placement import placed
from fairway.store.registry.tenants import found_cluster
from fairway.store.schema import partitions
from fairway.store.schema.distribution import BY_SHARD, distribute
from fairway.store.schema.migrate import migrate_at, silent
from fairway.store.sql import Statement, load, of_rows
from fairway.store.statements.distributed import routed

URL = os.environ.get("FAIRWAY_TEST_CITUS_URL", "")
on_a_cluster = pytest.mark.skipif(not URL, reason="needs a Citus cluster")

OTHERS = resources.files("fairway.store").joinpath("queries", "distributed")
ONLY_THERE = {"removals.sql", "bookings.sql"}
IN_STEPS = {"record_successes", "record_parents", "settle"}  # read by the next step
DATA_NODES = "SELECT nodeport FROM pg_dist_node WHERE noderole = 'primary' AND groupid <> 0"
END_WRITERS = """
SELECT pg_terminate_backend(pid, 3000) FROM pg_stat_activity
WHERE datname = current_database() AND state = 'idle in transaction'
"""
ONLY_FOR_EFFECT = {"pg_notify"}  # columns that nobody reads


def test_a_key_that_is_compared_as_a_whole_names_its_shards() -> None:
    text = "WHERE (jobs.shard, jobs.id) BETWEEN (done.shard, done.id) AND (done.shard, done.id)"
    turned = routed(f"{text} AND x = ANY(:owned::int[])")
    assert turned.startswith(
        "WHERE jobs.shard = ANY(:owned::int[]) AND jobs.shard = done.shard AND jobs.id = done.id"
    )


def test_one_shard_is_a_constant() -> None:
    text = "(f.shard, f.id) BETWEEN (:shard, a.id) AND (:shard, a.id)"
    assert routed(text) == "f.shard = :shard AND f.id = a.id"


def test_what_depends_on_the_moment_stands_aside() -> None:
    assert routed("CASE WHEN a >= 3 THEN now() END") == "(SELECT now() WHERE a >= 3)"
    assert "coalesce" not in routed("coalesce(a.b, now())")
    assert routed("ON CONFLICT DO UPDATE SET updated_at = now()").endswith("excluded.updated_at")


def test_what_is_not_recognised_stays_as_it_is() -> None:
    text = "SELECT id FROM jobs WHERE shard = :shard AND tenant = :tenant"
    assert routed(text) == text


def test_other_texts_are_of_statements_that_there_are() -> None:
    for file in OTHERS.iterdir():
        if file.name not in ONLY_THERE:
            names = {
                line[9:] for line in file.read_text("utf-8").split("\n") if "-- name: " in line
            }
            assert names <= set(load(file.name)), file.name


async def test_other_texts_answer_what_their_readers_read(connection: Connection) -> None:
    """Somebody adds a column to a statement, and not to its other text: no shard was claimed."""
    queries = resources.files("fairway.store").joinpath("queries")
    files = [file.name for file in queries.iterdir() if file.name.endswith(".sql")]
    missing: dict[str, list[str]] = {}
    for statement in (one for name in files for one in load(name).values() if one.distributed):
        assert statement.distributed is not None
        ours, theirs = [
            await _columns(connection, one) for one in (statement, statement.distributed)
        ]
        if ours != theirs and statement.name not in IN_STEPS:
            missing[statement.name] = theirs
    assert missing == {}


async def _columns(connection: Connection, statement: Statement) -> list[str]:
    prepared = await connection.prepare(statement.text)
    names = [attribute.name for attribute in prepared.get_attributes()]
    return [name for name in names if name not in ONLY_FOR_EFFECT]


def test_rows_of_values_are_bound_one_after_the_other() -> None:
    row = load("submissions.sql")["insert_job"]
    text, width = of_rows(row, 3), len(row.parameters)
    assert text.count("VALUES") == 1
    assert text.endswith(f"${3 * width})")
    positions = [int(number) for number in re.findall(r"\$(\d+)", text)]
    assert positions == [*range(1, 3 * width + 1)]
    assert of_rows(row, 1) == row.text


def test_what_a_node_said_is_of_its_class() -> None:
    """Citus loses the code where it copies: a job that was stored already was answered with 500."""
    taken = asyncpg.InternalServerError('duplicate key value violates unique constraint "x_102"')
    assert isinstance(as_said(taken), ID_TAKEN)
    assert getattr(as_said(taken), "sqlstate", None) == "23505"
    held = asyncpg.InternalServerError("canceling statement due to lock timeout")
    assert not is_about_rows(as_said(held))
    other = asyncpg.InternalServerError("cache lookup failed for type 7")
    assert as_said(other) is other


@pytest.mark.parametrize("kind", [asyncpg.QueryCanceledError, asyncpg.InternalServerError])
def test_whether_a_cancelled_statement_was_kept_is_not_known(
    kind: type[asyncpg.PostgresError],
) -> None:
    """Its node commits by itself: who heard that nothing was kept sent the same once more."""
    said = as_said(kind("canceling statement due to statement timeout"))
    assert isinstance(said, DISCONNECTED)
    assert not isinstance(said, UNDONE)
    assert "not known" in str(refusal_of(said))


@pytest.mark.parametrize(
    "words",
    [
        "could not commit transaction for shard 102012 on at least one active node",
        "failed to prepare transaction 'citus_0_1_2_3' on host 10.0.0.11:5432",
        "could not connect to any active placements",
    ],
)
def test_a_node_that_went_away_while_it_committed_says_nothing_of_the_rows(words: str) -> None:
    """A job that a transaction had committed was taken for one that cannot be, and set aside."""
    said = as_said(asyncpg.InternalServerError(words))
    assert isinstance(said, DISCONNECTED)
    assert not isinstance(said, UNDONE)
    assert not is_about_rows(said)


def test_of_several_jobs_with_one_key_the_first_is_written() -> None:
    """A hundred posts of one key at once: all that came together were written."""
    shard, tenant = ShardId(0), TenantId(1)
    first, same, other, free = (_job(shard, number) for number in range(4))
    claims = [
        submissions.KeyClaim(tenant, "a", b"", JobId(first.id)),
        submissions.KeyClaim(tenant, "b", b"", JobId(other.id)),
    ]
    claimed = [(job, JobId(job.id)) for job in (first, same, other)]
    written = submissions.with_won_keys(claims, [*claimed, (free, None)], {(tenant, "b")})
    assert written == [first, free]


def test_shards_that_lie_together_are_a_group() -> None:
    found = placed([(7, ShardId(0)), (7, ShardId(2)), (9, ShardId(1))])
    assert found.groups == [[0, 2], [1]]
    assert found.group_of[ShardId(2)] == found.group_of[ShardId(0)] != found.group_of[ShardId(1)]


# -- on a cluster --------------------------------------------------------------------------------


@pytest.fixture
async def cluster() -> AsyncIterator[Database]:
    await migrate_at(URL, roles=False)
    connection = await connect_for_once(URL, "fairway-test")
    try:
        await distribute(connection, silent)
        again = await distribute(connection, silent)
        assert again.tables == []
        await found_cluster(connection, 64, "secret")
    finally:
        await connection.close()
    database = await Database.open(URL, row_security=False)
    async with database.upkeep() as owner:
        await partitions.make_ahead(owner, datetime.now(UTC))
    yield database
    database.terminate()


@on_a_cluster
async def test_every_table_by_shard_lies_beside_the_first(cluster: Database) -> None:
    async with cluster.background() as connection:
        rows = await connection.fetch(
            "SELECT logicalrelid::text AS name, colocationid FROM pg_dist_partition"
        )
    where = {row["name"]: row["colocationid"] for row in rows}
    assert {where[table] for table in BY_SHARD} == {where["shards"]}


@on_a_cluster
async def test_the_way_of_a_job_is_a_matter_of_one_node(cluster: Database) -> None:
    heard: list[Any] = []
    assert cluster.placement is not None
    shard = cluster.placement.groups[0][0]
    async with cluster.hot() as connection:
        await leadership.claim_shards(connection, "test", "http://127.0.0.1", 30.0)
        rows = {row.shard: row for row in await leadership.read_shards(connection)}
        terms = {shard: rows[shard].term}
        jobs = [_job(shard, number) for number in range(3)]

        def hear(_: Any, message: Any) -> None:
            heard.append(message)

        connection.add_log_listener(hear)
        await connection.execute(
            "SET citus.log_remote_commands = on; SET client_min_messages = log"
        )
        await submissions.insert_jobs(connection, shard, jobs)
        done = [
            outcomes.Success(
                shard, job.tenant, JobId(job.id), next_epoch(Epoch(0), rows[shard].term), 5, b"1"
            )
            for job in jobs
        ]
        assert await outcomes.record_successes(connection, terms, done) == set()
        await connection.execute("RESET client_min_messages; RESET citus.log_remote_commands")
        connection.remove_log_listener(hear)
        saved = [leadership.RateRow(one, rows[one].term, b"x") for one in rows]
        await leadership.write_rates(connection, saved)
        group = [one for one in cluster.placement.groups[0] if one in rows]
        assert [row.shard for row, _ in await leadership.read_rates(connection, group)] == group
        await leadership.release_shards(connection, {one: rows[one].term for one in rows})
    nodes = {message.detail.split()[2] for message in heard if message.message[:7] == "issuing"}
    assert len(nodes) == 1
    assert not any("PREPARE TRANSACTION" in message.message for message in heard), "two phases"


@on_a_cluster
async def test_what_is_booked_and_what_is_taken_are_kept_together(cluster: Database) -> None:
    """The books are with the coordinator, the log on a node: a bare commit of each loses usage."""
    heard: list[Any] = []

    def hear(_: Any, message: Any) -> None:
        heard.append(message)

    assert cluster.placement is not None
    shard = cluster.placement.groups[0][0]
    async with cluster.background() as connection:
        await usage.begin_billing(connection, [shard])
        await connection.execute(
            "INSERT INTO usage_log (shard, tenant_ids, pool_ids, type_ids, billed_us)"
            " VALUES ($1, '{1}', '{1}', '{1}', '{5}')",
            shard,
        )
        connection.add_log_listener(hear)
        await connection.execute(
            "SET citus.log_remote_commands = on; SET client_min_messages = log"
        )
        assert await usage.roll_up(connection, [shard], 10) > 0
        await connection.execute("RESET client_min_messages; RESET citus.log_remote_commands")
        connection.remove_log_listener(hear)
    assert any("PREPARE TRANSACTION" in message.message for message in heard)


@on_a_cluster
async def test_a_node_that_ends_a_connection_before_the_commit(cluster: Database) -> None:
    with pytest.raises(DISCONNECTED) as told:
        await _write_without_the_node(cluster)
    assert "could not commit" in str(told.value)
    assert not isinstance(told.value, UNDONE)


async def _write_without_the_node(cluster: Database) -> None:
    """It goes away between the statement and its commit."""
    assert cluster.placement is not None
    shard = cluster.placement.groups[0][0]
    async with cluster.background() as connection:
        ports = [row["nodeport"] for row in await connection.fetch(DATA_NODES)]
    async with cluster.hot() as connection, connection.transaction():
        await submissions.insert_jobs(connection, shard, [_job(shard, 4)])
        for port in ports:
            here = urlsplit(URL)
            there = here._replace(netloc=f"{here.username}@{here.hostname}:{port}").geturl()
            node = await connect_for_once(there, "fairway-test")
            await node.execute(END_WRITERS)
            await node.close()


def _job(shard: ShardId, number: int) -> QueuedJob:
    return QueuedJob(
        _id(shard, number), TenantId(1), PoolId(1), TypeId(1), 5, 0, Epoch(0), 0, 0, None, b"{}"
    )


def _id(shard: ShardId, number: int) -> JobId:
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    text = f"{now_ms:012x}7{shard:03x}8{number:015x}"
    return JobId(f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}")
