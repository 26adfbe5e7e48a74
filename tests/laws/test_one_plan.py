"""No plan may flip: every statement on jobs costs by what it asks for, whatever was believed.

Each statement is planned under each kind of statistics, with the settings of the pool it runs on;
then the queue fills, and the same plans are carried out and their pages counted. Statistics are
true at the moment they are taken and wrong afterwards, as in life; a second session plans late,
under the old statistics.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import asyncpg
import pytest
from tests.laws import statistics
from tests.laws.batches import FROM_THE_START, HIGHEST, OWN_VALUES, batch_values
from tests.laws.plans import Plan, Prepared
from tests.laws.source import QUERIES
from tests.laws.statistics import BELIEFS, TENANTS, TODAY
from tests.postgres import Server, in_thread
from tests.store.rows import new_job

from fairway.core.ids import LOWEST_JOB_ID, Epoch, PoolId, TypeId
from fairway.core.job import QueuedJob
from fairway.store import arrays
from fairway.store.connections.database import BACKGROUND_PLANS, PINNED_PLANS, Connection
from fairway.store.sql import Statement, load

ASKED = 50  # rows a statement asks for
PAGES_PER_ROW = 25  # an UPDATE writes into every index of its row
DEPTH, DEPTH_LARGE = 20_000, 200_000
SECONDS_MAX = 10  # a plan that needs longer walks

ALL: dict[str, Statement] = {
    name: statement
    for path in sorted(QUERIES.glob("*.sql"))
    for name, statement in load(path.name).items()
}
HOT = [
    "record_successes", "record_successes_in_place", "record_parents", "settle", "write_leases",
    "read_ends", "unlocked",
    "read_held", "read_states", "read_jobs", "expire", "cancel_many", "cancel_waiting",
    "reschedule", "promote_due", "read_streams", "read_streams_by_bytes", "streams_with_work",
    "next_queued", "pull_heads", "pull_jobs", "due_bunches", "end_refused", "next_second",
    "passed_last_moments",
    "jobs_ahead", "read_running", "read_members", "release", "give_up",
    "claim_unique", "lock_waiting",
    "shards_scheduled", "shards_past_last_moments", "shards_queued",
]  # fmt: skip
CALM = [
    "replay", "discard", "next_dead", "list_dead", "save_checkpoint", "drop_finished_checkpoints",
    "count_queued", "is_lease_in_force", "types_of_jobs", "list_children", "read_relatives",
    "join_flow", "lock_needed", "read_result", "read_payloads", "jobs_of_attempts", "live_jobs",
    "read_traces", "tenants_with_rows", "hold_jobs", "known_jobs",
    "move_jobs", "look_at_move", "late_rows",
]  # fmt: skip
#: What must look at as many rows as there are: it is asked seldom, and counts or filters.
WALKS = {
    "count_dead", "dead_causes", "dead_types", "list_jobs", "count_live_jobs", "list_shards",
}  # fmt: skip
ADDS = {
    "insert_job", "insert_jobs", "insert_traced_jobs", "insert_marked_jobs", "claim_and_insert",
    "claim_and_insert_traced", "insert_nothing", "insert_moved_jobs",
}  # fmt: skip

Values = dict[str, dict[str, Any]]
Belief = Callable[[Connection], Awaitable[None]]


class Runs(NamedTuple):
    """How each statement was carried out: planned then or late, at a depth of the queue."""

    plans: dict[tuple[str, str, int], Plan | None]

    def dear(self) -> dict[str, object]:
        """Those that looked at more than they asked for, with how much."""
        return {
            f"{name}, planned {when}, {depth} queued": plan.pages if plan else "ran too long"
            for (name, when, depth), plan in self.plans.items()
            if plan is None or plan.pages > ASKED * PAGES_PER_ROW
        }

    def shapes(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for (name, _, depth), plan in self.plans.items():
            if plan is not None and depth and name in HOT:
                found.setdefault(name, set()).add("\n".join(plan.shape(TODAY.name)))
        return found


async def carry_out(server: Server, belief: Belief, depths: tuple[int, ...]) -> Runs:
    plans: dict[tuple[str, str, int], Plan | None] = {}
    async with statistics.believing(server, belief) as (dsn, connection):
        then = await sessions(dsn, await values_now(connection))
        filled = 0
        for depth in depths:
            await statistics.arrive(connection, filled, depth)
            filled, values = depth, await values_now(connection)
            for when, prepared in (("then", then), ("late", await sessions(dsn, values))):
                for session, names in zip(prepared, (HOT, CALM), strict=True):
                    for name in names:
                        plan = await session.run(name, values[name], SECONDS_MAX)
                        plans[name, when, depth] = plan
    return Runs(plans)


async def sessions(dsn: str, values: Values) -> tuple[Prepared, Prepared]:
    """One of each pool. Calm ones keep generic plans too: the driver's sixth call may."""
    settings = PINNED_PLANS, BACKGROUND_PLANS | {"plan_cache_mode": "force_generic_plan"}
    hot, calm = [await asyncpg.connect(dsn, server_settings=pool) for pool in settings]
    return (
        await Prepared.now(hot, {name: ALL[name] for name in HOT}, values),
        await Prepared.now(calm, {name: ALL[name] for name in CALM}, values),
    )


async def values_now(connection: Connection) -> Values:
    """What each statement asks for: jobs that are there, as far as any are."""
    rows = await connection.fetch(
        f"SELECT id::text AS id, tenant, ctid::text AS place FROM {TODAY.name}"
        f" WHERE state = 1 ORDER BY md5(id::text) LIMIT {ASKED}"
    )
    dead = await connection.fetch(
        f"SELECT id::text AS id FROM {TODAY.name} WHERE state = 4 AND tenant = 1"
        f" ORDER BY md5(id::text) LIMIT {ASKED}"
    )
    jobs = [
        QueuedJob(row["id"], row["tenant"], PoolId(1), TypeId(1), 5, 0, Epoch(0), 0, 0, None, b"{}")
        for row in rows
    ]
    jobs = jobs or [new_job(at=TODAY.begins) for _ in range(ASKED)]
    common = batch_values(jobs) | OTHERS | {
        "places": arrays.places([row["place"] for row in rows] or ["(0,1)"] * ASKED),
        "job": jobs[0].id,
    }  # fmt: skip
    own = OWN | {name: {"tenant": 1, "ids": [row["id"] for row in dead]} for name in DEAD_LETTERS}
    return {name: common | OWN_VALUES.get(name, {}) | own.get(name, {}) for name in (*HOT, *CALM)}


DEAD_LETTERS = ("replay", "discard")
OTHERS: dict[str, Any] = {
    "payload": None, "entry": b"{}", "epoch": 1, "token": LOWEST_JOB_ID, "number": 1,
    "object": "o", "size_bytes": 1, "digest": b"d", "cursor": LOWEST_JOB_ID, "fingerprint": None,
    "since": LOWEST_JOB_ID, "began": statistics.NOW, "limit": ASKED, "flow": LOWEST_JOB_ID,
}  # fmt: skip
STREAMS_ASKED: dict[str, Any] = {
    "shards": [0] * ASKED,
    "pools": [1] * ASKED, "tenants": [n % TENANTS + 1 for n in range(ASKED)],
    "types": [1] * ASKED, "lanes": [0] * ASKED, "priorities": [5] * ASKED,
    "cursors": [LOWEST_JOB_ID] * ASKED, "limits": [1] * ASKED,
}  # fmt: skip
OWN: Values = {
    "jobs_ahead": {"pool": 1, "type": 1, "tenant": 1, "id": HIGHEST},
    "count_queued": FROM_THE_START | {"id": LOWEST_JOB_ID, "limit": ASKED},
    "promote_due": {
        "tenants": [1], "limits": [ASKED], "bunch_tenants": [1],
        "bunch_seconds": [int(statistics.DUE.timestamp())],
    },
    "live_jobs": {
        "tenant": 1, "before": HIGHEST, "states": [0, 1, 2], "type": None, "pool": None,
        "tag": None, "looked_max": ASKED,
    },
    "read_streams": STREAMS_ASKED,
    "read_streams_by_bytes": STREAMS_ASKED,
    "pull_jobs": STREAMS_ASKED,
    "tenants_with_rows": {"tenants": [1]},
    "late_rows": {"tenants": [1], "shards": [0]},
    "look_at_move": {"tenant": 1},
    "move_jobs": {
        "tenant": 1, "from_shard": 0, "held": 0, "to_shard": 1, "term": 1,
        "after": f'["{LOWEST_JOB_ID}"]',
    },
    "hold_jobs": {"mark": b"\x00", "mark_bytes": 1, "term": 1},
    "known_jobs": {"but_offered_to": None},
}  # fmt: skip


@pytest.fixture(scope="module")
def runs(postgres_server: Server) -> Callable[[Belief], Runs]:
    """What became of all statements under a belief; tried once."""
    known: dict[Belief, Runs] = {}

    def found(belief: Belief) -> Runs:
        if belief not in known:
            known[belief] = in_thread(carry_out(postgres_server, belief, (0, DEPTH)))
        return known[belief]

    return found


every_belief = pytest.mark.parametrize("belief", BELIEFS, ids=lambda belief: belief.__name__)


@every_belief
def test_a_statement_looks_at_what_it_asks_for(
    runs: Callable[[Belief], Runs], belief: Belief
) -> None:
    assert runs(belief).dear() == {}


def test_a_hot_statement_has_one_plan(runs: Callable[[Belief], Runs]) -> None:
    """Not merely a good one each time: then there is nothing to be chosen, and nothing to flip."""
    shapes: dict[str, set[str]] = {name: set() for name in HOT}
    for belief in BELIEFS:
        for name, found in runs(belief).shapes().items():
            shapes[name] |= found
    assert {name: found for name, found in shapes.items() if len(found) != 1} == {}


@pytest.mark.slow
@every_belief
def test_the_same_when_the_queue_is_ten_times_as_long(
    postgres_server: Server, belief: Belief
) -> None:
    assert in_thread(carry_out(postgres_server, belief, (DEPTH_LARGE,))).dear() == {}


def test_every_statement_on_jobs_is_tried() -> None:
    on_jobs = re.compile(r"(FROM|JOIN|UPDATE|INTO)\s+jobs\b")
    found = {name for name, statement in ALL.items() if on_jobs.search(statement.text)}
    assert found - WALKS - ADDS == {*HOT, *CALM}
