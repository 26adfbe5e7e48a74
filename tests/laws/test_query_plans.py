"""Hot statements touch what they name and nothing else: by index, in the partition of the batch.

The table is filled the way it is in life: yesterday is history, today is finished work with a
backlog on top, tomorrow is empty. Plans are the generic ones that the hot path runs.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import asyncpg
import pytest
from tests.laws.batches import BATCH, DUE, HIGHEST, OWN_VALUES, batch_values
from tests.laws.plans import Plan
from tests.postgres import Server, at_database, drop_database, in_thread, make_database
from tests.store.rows import new_job

from fairway.core.ids import LOWEST_JOB_ID
from fairway.core.job import QueuedJob
from fairway.store import arrays
from fairway.store.connections.database import BACKGROUND_PLANS, PINNED_PLANS, Connection
from fairway.store.registry.tenants import found_cluster
from fairway.store.schema.partitions import partition_at
from fairway.store.shard_looks import ALL_LOOKS
from fairway.store.sql import Statement, load

NOW = datetime.now(UTC)
TODAY, YESTERDAY = partition_at(NOW), partition_at(NOW - timedelta(days=1))
DONE_EACH_DAY = 3000
STREAMS, QUEUED_IN_EACH = 8, 100
SCHEDULED = 5000  # for later in the year

FILES = (
    "backlog", "fair_share", "history", "leadership", "leases", "outcomes", "promotion",
    "shard_looks", "shard_terms", "submissions",
)  # fmt: skip
STATEMENTS: dict[str, Statement] = {
    name: statement for file in FILES for name, statement in load(f"{file}.sql").items()
} | {ALL_LOOKS.name: ALL_LOOKS}


class Filled(NamedTuple):
    """A database as it is in life, and a batch of today's jobs that run."""

    dsn: str
    queued: list[QueuedJob]


@pytest.fixture(scope="module")
def filled(postgres_server: Server) -> Iterator[Filled]:
    name = f"plans_{os.getpid()}"
    in_thread(make_database(postgres_server.dsn, name, postgres_server.template))
    dsn = at_database(postgres_server.dsn, name)
    yield Filled(dsn, in_thread(fill(dsn)))
    in_thread(drop_database(postgres_server.dsn, name))


async def fill(dsn: str) -> list[QueuedJob]:
    connection = await asyncpg.connect(dsn)
    try:
        await found_cluster(connection, 1, "secret")
        for moment in (YESTERDAY.begins, TODAY.begins):
            done = [new_job(at=moment, tenant=n % 50) for n in range(DONE_EACH_DAY)]
            await write(connection, done, state=3, finished_at=NOW)
        queued = [
            new_job(at=NOW, tenant=stream % 4, type=stream % 2, priority=stream)
            for _ in range(QUEUED_IN_EACH)
            for stream in range(STREAMS)
        ]
        await write(connection, queued, state=1)
        due = [new_job(at=NOW) for _ in range(200)]
        await write(connection, due, state=0, execute_at=DUE)
        waiting = [new_job(at=NOW, tenant=n % 50) for n in range(SCHEDULED)]
        await write(connection, waiting, state=0, execute_at=NOW + timedelta(days=200))
        await connection.execute("UPDATE shards SET term = 1, expires_at = 'infinity'")
        await connection.execute("ANALYZE")
        return queued
    finally:
        await connection.close()


async def write(connection: Connection, jobs: list[QueuedJob], **columns: Any) -> None:
    await connection.copy_records_to_table(
        "jobs",
        columns=("shard", "id", "tenant", "type", "pool", "priority", "payload", *columns),
        records=[
            (0, job.id, job.tenant, job.type, job.pool, job.priority, b"{}", *columns.values())
            for job in jobs
        ],
    )


@pytest.fixture
async def hot(filled: Filled) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(filled.dsn, server_settings=PINNED_PLANS)
    yield connection
    await connection.close()


async def plan_of(hot: Connection, filled: Filled, name: str, **changes: Any) -> Plan:
    values = batch_values(filled.queued[:BATCH]) | OWN_VALUES.get(name, {}) | changes
    return await Plan.of(hot, STATEMENTS[name], **values)


# -- by index, in the right partition ------------------------------------------------------------

BY_BATCH = [
    "record_successes",
    "record_parents",
    "settle",
    "end_refused",
    "write_leases",
    "unlocked",
    "read_ends",
    "read_held",
    "read_states",
    "read_jobs",
    "expire",
    "cancel_many",
    "list_children",
    "read_relatives",
]
BY_ID = ["cancel_waiting", "reschedule"]
IN_PLACE = "record_successes_in_place"
TIMED = ["due_bunches", "next_second", "promote_due", "passed_last_moments"]
READS = ["read_streams", "read_streams_by_bytes", "pull_jobs"]
WALKED = ["streams_with_work", "next_queued", "pull_heads"]
LOOKS = [*load("shard_looks.sql"), ALL_LOOKS.name]
BY_SHARD = ["jobs_ahead", "read_running", *WALKED, *READS, *TIMED, *LOOKS]
ASIDE = [
    "write_debts",
    "forget_debts",
    "read_debts",
    "claim_keys",
    "read_keys",
    "release_keys",
    "see_sessions",
    "forget_sessions",
    "silent_sessions",
    "whose_sessions",
    "terms_in_force",
]


@pytest.mark.parametrize("name", BY_BATCH + BY_ID)
async def test_a_batch_is_looked_up_in_its_own_partition_alone(
    hot: Connection, filled: Filled, name: str
) -> None:
    plan = await plan_of(hot, filled, name)
    assert plan.kinds() <= {"Index Scan", "Index Only Scan", "ModifyTable"}
    assert plan.tables() == {TODAY.name}
    assert plan.rows_touched() <= 2 * BATCH + 2, "a row is touched for what it is, once"


async def test_a_row_whose_place_is_known_is_fetched_from_there(
    hot: Connection, filled: Filled
) -> None:
    jobs = filled.queued[:BATCH]
    rows = await hot.fetch("SELECT id::text AS id, ctid::text AS place FROM jobs WHERE state = 1")
    places = {row["id"]: row["place"] for row in rows}
    known = arrays.places([places[job.id] for job in jobs])
    plan = await plan_of(hot, filled, IN_PLACE, places=known)
    assert {node["Node Type"] for node in plan.run() if TODAY.name in node.values()} == {"Tid Scan"}
    assert plan.tables() == {TODAY.name}
    assert plan.rows_touched() == BATCH + 1, "each row, and the term"


async def test_a_batch_over_midnight_looks_into_both_days(hot: Connection, filled: Filled) -> None:
    old = [new_job(at=YESTERDAY.begins) for _ in range(3)]
    plan = await Plan.of(
        hot, STATEMENTS["record_successes"], **batch_values([*old, *filled.queued[:3]])
    )
    assert plan.tables() == {YESTERDAY.name, TODAY.name}


@pytest.mark.parametrize("name", BY_SHARD + ASIDE)
async def test_no_hot_statement_scans_a_table(hot: Connection, filled: Filled, name: str) -> None:
    own = {"tenants": list(range(BATCH))} if name == "write_debts" else {}
    plan = await plan_of(hot, filled, name, **own)
    assert not [kind for kind in plan.kinds() if "Seq" in kind or "Bitmap" in kind]


@pytest.mark.parametrize("name", ["read_running", *WALKED, *TIMED, *LOOKS])
async def test_history_is_never_walked_over(hot: Connection, filled: Filled, name: str) -> None:
    plan = await plan_of(hot, filled, name)
    assert plan.rows_touched() < DONE_EACH_DAY / 2


@pytest.mark.parametrize("settings", [PINNED_PLANS, BACKGROUND_PLANS], ids=["hot", "calm"])
@pytest.mark.parametrize("name", ["list_jobs", "types_of_jobs"])
async def test_a_page_of_history_reads_a_page(
    filled: Filled, settings: dict[str, str], name: str
) -> None:
    connection = await asyncpg.connect(filled.dsn, server_settings=settings)
    plan = await plan_of(connection, filled, name, states=None, since=LOWEST_JOB_ID)
    await connection.close()
    assert plan.rows_touched() <= BATCH + 10, "the tenant has many more"


@pytest.mark.parametrize("settings", [PINNED_PLANS, BACKGROUND_PLANS], ids=["hot", "calm"])
async def test_a_page_of_flows_reads_a_page_and_its_links(
    filled: Filled, settings: dict[str, str]
) -> None:
    chains, links = 100, 20
    connection = await asyncpg.connect(filled.dsn, server_settings=settings)
    await connection.execute(
        "INSERT INTO flows (shard, tenant, id, kind, needs, is_open, members, waiting)"
        " SELECT 0, n % 3, gen_random_uuid(), CASE n % $1 WHEN 0 THEN 1 ELSE 2 END, 0, false, 1,"
        " '{}' FROM generate_series(1, $2) AS n",
        links, 3 * chains * links,
    )  # fmt: skip
    await connection.execute("ANALYZE flows")
    statement = load("flows.sql")["list_flows"]
    asked = {"shard": 0, "tenant": 1, "since": LOWEST_JOB_ID, "before": HIGHEST, "limit": 10}
    plan = await Plan.of(connection, statement, **asked)
    await connection.execute("TRUNCATE flows")
    await connection.close()
    assert plan.kinds() == {"Index Scan"}
    assert plan.rows_touched() < chains * links / 2, "the tenant has as many again, and others too"


# -- cost by streams, not by depth ---------------------------------------------------------------


async def test_finding_streams_costs_by_streams_not_by_depth(
    hot: Connection, filled: Filled
) -> None:
    parts = await hot.fetchval(
        "SELECT count(*) FROM pg_inherits WHERE inhparent = 'jobs'::regclass"
    )
    plan = await plan_of(hot, filled, "streams_with_work")
    assert STREAMS <= plan.rows_touched() <= (STREAMS + 1) * (parts + 1)
    before = plan.rows_touched()
    async with deeper(hot, 4000):
        plan = await plan_of(hot, filled, "streams_with_work")
        assert plan.rows_touched() == before


@asynccontextmanager
async def deeper(hot: Connection, count: int) -> AsyncIterator[None]:
    """The same streams, much deeper."""
    jobs = [new_job(tenant=n % 4, type=n % 2, priority=n % STREAMS) for n in range(count)]
    await write(hot, jobs, state=1)
    yield
    await hot.execute("DELETE FROM jobs WHERE id = ANY($1::uuid[])", [job.id for job in jobs])


async def test_a_read_of_a_stream_reads_what_it_asked_for(hot: Connection, filled: Filled) -> None:
    one = filled.queued[:1]
    plan = await Plan.of(hot, STATEMENTS["read_streams"], **batch_values(one))
    assert plan.rows_touched() <= BATCH + 10
    later = batch_values(one) | {"cursors": [filled.queued[STREAMS * 90].id]}
    plan = await Plan.of(hot, STATEMENTS["read_streams"], **later)
    assert plan.rows_touched() <= BATCH, "what lies before the cursor costs nothing"


async def test_promotion_touches_what_is_due_up_to_its_limit(
    hot: Connection, filled: Filled
) -> None:
    share = {"tenants": [1], "limits": [BATCH]}
    plan = await plan_of(hot, filled, "promote_due", **share)
    assert BATCH <= plan.rows_touched() <= 3 * BATCH + 10


async def test_promotion_looks_its_rows_up_by_key_whatever_the_statistics(
    hot: Connection, filled: Filled
) -> None:
    """A plan made while nothing was scheduled must not become a walk when a million jobs are."""
    await hot.execute("UPDATE pg_class SET reltuples = -1, relpages = 0 WHERE relname ~ '^jobs'")
    await hot.execute(
        "DELETE FROM pg_statistic"
        " WHERE starelid IN (SELECT oid FROM pg_class WHERE relname ~ '^jobs')"
    )
    plan = await plan_of(hot, filled, "promote_due", tenants=[1], limits=[BATCH])
    await hot.execute("ANALYZE")
    by_alias = [
        node["Index Name"]
        for node in plan.nodes()
        if str(node.get("Alias", "")).startswith("jobs") and "Index Name" in node
    ]
    assert len(by_alias) > 4
    target = [name for name in by_alias if name.endswith("_pkey")]
    assert target, by_alias
    assert plan.rows_touched() <= 3 * BATCH + 10


async def test_jobs_for_later_in_the_year_are_never_touched(
    hot: Connection, filled: Filled
) -> None:
    """However many wait: a round looks at due jobs, and once at the first of the others."""
    parts = await hot.fetchval(
        "SELECT count(*) FROM pg_inherits WHERE inhparent = 'jobs'::regclass"
    )
    async with nothing_due(hot):
        for name, most in (("due_bunches", 0), ("promote_due", 1), ("next_second", parts)):
            plan = await plan_of(hot, filled, name, tenants=[1], limits=[BATCH], limit=200)
            assert plan.rows_touched() <= most, name
    plan = await plan_of(hot, filled, "due_bunches", limit=200)
    assert plan.rows_touched() <= 2, "200 due jobs of one tenant and second are one bunch"


@asynccontextmanager
async def nothing_due(hot: Connection) -> AsyncIterator[None]:
    await hot.execute("UPDATE jobs SET state = 5, finished_at = now() WHERE execute_at <= now()")
    yield
    await hot.execute("UPDATE jobs SET state = 0, finished_at = NULL WHERE execute_at <= now()")


def test_every_hot_statement_is_looked_at() -> None:
    upkeep = {"count_queued", "forget_keys", "live_sessions"}
    upkeep |= {"list_jobs", "live_jobs", "count_live_jobs", "types_of_jobs"}
    inserts = {
        "insert_job",
        "insert_jobs",
        "insert_traced_jobs",
        "insert_marked_jobs",
        "claim_and_insert",
        "claim_and_insert_traced",
        "insert_nothing",
    }  # these find no row
    leadership = set(load("leadership.sql")) | inserts
    looked_at = {*BY_BATCH, *BY_ID, *BY_SHARD, *ASIDE, IN_PLACE}
    assert set(STATEMENTS) - upkeep - leadership == looked_at
