"""The states in the core, in the schema's checks and in the queries are the same numbers."""

from __future__ import annotations

import re

import asyncpg
import pytest
from tests.laws.source import QUERIES
from tests.store.rows import new_job

from fairway.core.lifecycle import FINAL, State, may_move
from fairway.store.connections.database import Connection
from fairway.store.sql import load

MOMENT = "2030-01-01+00"


async def is_allowed(connection: Connection, state: int, **columns: bool) -> bool:
    """Whether the schema takes a row in this state with these columns filled."""
    lease = "gen_random_uuid()" if columns.get("lease") else "NULL"
    due = f"'{MOMENT}'" if columns.get("execute_at") else "NULL"
    end = f"'{MOMENT}'" if columns.get("finished_at") else "NULL"
    try:
        await connection.execute(
            "INSERT INTO jobs (shard, id, tenant, type, pool, priority, payload, state,"
            f" execute_at, session, token, finished_at) VALUES (0, '{new_job().id}', 1, 1, 1, 5,"
            f" '', {state}, {due}, {lease}, {lease}, {end})"
        )
    except asyncpg.CheckViolationError:
        return False
    return True


async def test_the_schema_knows_exactly_the_states_of_the_core(connection: Connection) -> None:
    for number in range(-1, 10):
        known = await is_allowed(
            connection, number, lease=True, execute_at=True, finished_at=number >= 3
        )
        assert known == (number in set(State)), number


@pytest.mark.parametrize("state", list(State), ids=str)
async def test_the_schema_refuses_the_impossible(connection: Connection, state: State) -> None:
    is_final, needs_due, needs_lease = (
        state in FINAL,
        state is State.SCHEDULED,
        state is State.RUNNING,
    )
    right = {"finished_at": is_final, "execute_at": needs_due, "lease": needs_lease}
    assert await is_allowed(connection, state, **right)
    assert not await is_allowed(connection, state, **{**right, "finished_at": not is_final})
    if needs_due:
        assert not await is_allowed(connection, state, **{**right, "execute_at": False})
    if needs_lease:
        assert not await is_allowed(connection, state, **{**right, "lease": False})


def moves_of(text: str) -> set[tuple[State, State]]:
    """The moves of an UPDATE: from the states its WHERE asks for to the one it SETs."""
    target = re.search(r"UPDATE jobs SET state = (\d)", text)
    if target is None:
        return set()
    return {(source, State(int(target[1]))) for source in sources_of(text)}


def sources_of(text: str) -> set[State]:
    """The states that an UPDATE starts from, in each of the ways that guards are written."""
    where = text[text.index("WHERE") :]
    sources = re.findall(r"(?<!\w)(?:jobs\.)?state(?: \+ 0)? = (\d)", where)
    for group in re.findall(r"state IN \(([\d, ]+)\)", where):
        sources += group.split(",")
    if "CASE jobs.state" in where:
        sources += re.findall(r"WHEN (\d) THEN", where)
    return {State(int(number)) for number in sources}


def test_every_update_is_a_legal_move() -> None:
    found = {}
    for path in sorted(QUERIES.glob("*.sql")):
        for name, statement in load(path.name).items():
            if moves := moves_of(statement.text):
                found[name] = moves
    assert {"record_successes", "write_leases", "promote_due", "cancel_waiting"} <= set(found)
    assert "expire" in found
    for name, moves in found.items():
        for before, after in moves:
            again = before is after  # writing the same lease twice is no move
            assert again or may_move(before, after), f"{name}: {before!r} to {after!r}"


def test_settling_starts_only_from_where_a_run_can_be() -> None:
    statement = load("outcomes.sql")["settle"].text
    assert sources_of(statement) == {State.QUEUED, State.RUNNING}
    assert f"done.state >= {min(FINAL)}" in statement


async def test_indexes_are_of_live_states_and_dead_letters(
    connection: Connection,
) -> None:
    rows = await connection.fetch(
        "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'jobs' AND indexdef ~ 'WHERE'"
    )
    waiting = [row["indexname"] for row in rows if f"state <= {State.QUEUED}" in row["indexdef"]]
    assert waiting == ["jobs_not_after"]
    states = {
        row["indexname"]: State(int(row["indexdef"].partition("state = ")[2][0]))
        for row in rows
        if row["indexname"] not in waiting
    }
    assert states == {
        "jobs_queued": State.QUEUED,
        "jobs_running": State.RUNNING,
        "jobs_due": State.SCHEDULED,
        "jobs_dead": State.DEAD,
        "jobs_dead_by_type": State.DEAD,
        "jobs_dead_by_cause": State.DEAD,
    }
