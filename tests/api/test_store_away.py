"""A store that is silent, read-only, locked or full: 503 in time, nothing lost, nothing doubled."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.api.cable import Cable, cable_to
from tests.api.house import House, open_house, problem
from tests.cli.program import fairway, sentence
from tests.postgres import Server, at_database, connected, own_database

from fairway.services import readiness
from fairway.services.readiness import KEPT_US
from fairway.store.connections.database import Connection

DAILY = {"cron": "0 3 * * *", "type": "work"}
IN_TIME_SECONDS = 6.0  # three, and as many again for a machine that has other work to do


@pytest.fixture(scope="module")
def line(postgres_server: Server) -> Iterator[Cable]:
    """A way to a database that only these tests use."""
    with own_database(postgres_server, "api_store_away") as dsn, cable_to(dsn) as cable:
        yield cable


@pytest.fixture(scope="module")
def own_house(line: Cable) -> Iterator[House]:
    with open_house(line.dsn, store_wait_seconds=3.0) as house:
        yield house


@pytest.fixture
async def caller(own_house: House) -> AsyncIterator[httpx2.AsyncClient]:
    _, key = own_house.new_tenant()
    async with own_house.caller(key) as client:
        assert (await client.post("/v1/jobs", json={"type": "work"})).status_code == 202
        yield client


@asynccontextmanager
async def beside(server: Server) -> AsyncIterator[Connection]:
    """A connection that goes around the cable."""
    async with connected(at_database(server.dsn, "api_store_away")) as connection:
        yield connection


async def timed(call: Any) -> tuple[httpx2.Response, float]:
    began = time.monotonic()
    return await call, time.monotonic() - began


async def until_accepted(client: httpx2.AsyncClient, **sent: Any) -> httpx2.Response:
    async with asyncio.timeout(20):
        while (reply := await client.post("/v1/jobs", **sent)).status_code != 202:
            problem(reply, 503, "UNAVAILABLE")
            await asyncio.sleep(0.05)
    return reply


async def test_a_store_that_takes_bytes_and_never_answers(
    own_house: House, line: Cable, caller: httpx2.AsyncClient
) -> None:
    location = (await caller.post("/v1/jobs", json={"type": "work"})).headers["location"]
    with line.silent():
        calls = [
            caller.post("/v1/jobs", json={"type": "work"}, headers={"idempotency-key": f"k{n % 5}"})
            for n in range(20)
        ]
        calls += [
            caller.post("/v1/jobs/batch", json={"jobs": [{"type": "work"}] * 50}),
            caller.get(location),
            caller.get("/v1/jobs"),
            caller.get("/v1/jobs?state=queued"),
            caller.get("/v1/usage"),
            caller.get("/v1/dead-letters/groups"),
            caller.post("/v1/bulk-actions", json={"act": "cancel", "dry_run": True}),
            caller.delete(location),
            caller.put("/v1/schedules/s", json={"cron": "0 3 * * *", "type": "brand.new"}),
            caller.get("/readyz"),
        ]
        for reply, seconds in await asyncio.gather(*map(timed, calls)):
            assert reply.status_code == 503, reply.text
            assert seconds < IN_TIME_SECONDS
        async with asyncio.timeout(20):  # noticed: from now on nobody waits
            while not own_house.platform.database.is_away:  # noqa: ASYNC110  # another thread's fact
                await asyncio.sleep(0.02)
        reply, seconds = await timed(caller.post("/v1/jobs", json={"type": "work"}))
        assert "nothing of it was kept" in problem(reply, 503, "UNAVAILABLE")["detail"]
        assert seconds < 1.5
        assert (await caller.get("/livez")).status_code == 200
    ids: Counter[str] = Counter()
    for number in range(5):
        headers = {"idempotency-key": f"k{number}"}
        for _ in range(2):
            reply = await until_accepted(caller, json={"type": "work"}, headers=headers)
            ids[reply.json()["id"]] += 1
    assert list(ids.values()) == [2] * 5  # a key, a job: whatever became of the first sending
    listed = (await caller.get("/v1/jobs?limit=200")).json()["jobs"]
    assert set(ids) <= {job["id"] for job in listed}


async def test_whoever_asks_hears_that_the_database_does_not_answer(
    own_house: House, line: Cable, tmp_path: Path
) -> None:
    """Operators, too, were told to try again shortly, and no more."""
    given = {"FAIRWAY_URL": own_house.url, "FAIRWAY_OPERATOR_KEY": own_house.operator_key}
    line.cut()
    try:
        async with asyncio.timeout(20):
            while not own_house.platform.database.hosts.is_unreachable:  # noqa: ASYNC110  # as above
                await asyncio.sleep(0.02)
        for words in (("servers",), ("shards", "ls")):
            ended = await asyncio.to_thread(fairway, tmp_path, *words, **given)
            assert sentence(ended).startswith("The database of this service does not answer")
        async with own_house.caller(own_house.operator_key) as operator:
            reasons = (await operator.get("/v1/overview")).json()["health"]["reasons"]
        assert "STORE_AWAY" in {one["code"] for one in reasons}
    finally:
        line.mend()


async def test_a_store_that_is_read_only_since_a_failover(
    postgres_server: Server, own_house: House, caller: httpx2.AsyncClient
) -> None:
    async with beside(postgres_server) as connection:
        try:
            await connection.execute(
                "ALTER DATABASE api_store_away SET default_transaction_read_only = on"
            )
            await drop_others(connection)
            for path, body in (("/v1/jobs", {"type": "work"}), ("/v1/jobs", {"type": "new.one"})):
                reply, seconds = await timed(caller.post(path, json=body))
                problem(reply, 503, "UNAVAILABLE")
                assert seconds < IN_TIME_SECONDS
            assert (await caller.get("/v1/jobs")).status_code == 200
        finally:
            await connection.execute("SET default_transaction_read_only = off")
            await connection.execute(
                "ALTER DATABASE api_store_away RESET default_transaction_read_only"
            )
    # Nobody drops a connection now: those that lead to the old primary must go by themselves.
    await until_accepted(caller, json={"type": "work"})
    async with asyncio.timeout(20):
        while (reply := await caller.put("/v1/schedules/s", json=DAILY)).status_code != 201:
            problem(reply, 503, "UNAVAILABLE")
            await asyncio.sleep(0.05)


async def drop_others(connection: Connection) -> None:
    await connection.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


@pytest.mark.parametrize(
    ("table", "method", "path", "body"),
    [
        ("jobs", "POST", "/v1/jobs", {"type": "work"}),
        ("usage_hours", "GET", "/v1/usage", None),
        ("jobs", "GET", "/v1/usage/attempts", None),
        ("job_types", "GET", "/v1/jobs?type=never.seen", None),
    ],
)
async def test_a_table_that_somebody_locked(
    postgres_server: Server,
    caller: httpx2.AsyncClient,
    table: str,
    method: str,
    path: str,
    body: dict[str, str] | None,
) -> None:
    async with beside(postgres_server) as connection, connection.transaction():
        await connection.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        reply, seconds = await timed(caller.request(method, path, json=body))
        problem(reply, 503, "UNAVAILABLE")
        assert seconds < IN_TIME_SECONDS
    await until_accepted(caller, json={"type": "work"})


async def test_a_job_that_is_on_disk_is_no_refusal_because_it_cannot_be_waited_for(
    postgres_server: Server, caller: httpx2.AsyncClient
) -> None:
    """Its caller would send it again, as another."""
    sent = {"type": "work", "pool": "long"}
    async with beside(postgres_server) as connection, connection.transaction():
        await connection.execute("LOCK TABLE checkpoints IN ACCESS EXCLUSIVE MODE")  # it is read
        reply = await caller.post("/v1/jobs", json=sent, headers={"prefer": "wait=20"})
    assert reply.status_code == 202, reply.text
    assert (await caller.get(reply.headers["location"])).json()["state"] == "queued"


@pytest.mark.parametrize("mode", ["ACCESS EXCLUSIVE", "SHARE"])
async def test_a_server_whose_jobs_are_locked_is_not_ready(
    postgres_server: Server, caller: httpx2.AsyncClient, mode: str
) -> None:
    """`SHARE` is what CREATE INDEX takes: all can be read, and no job can be handed in."""
    async with beside(postgres_server) as connection, connection.transaction():
        await connection.execute(f"LOCK TABLE jobs IN {mode} MODE")
        await asyncio.sleep(KEPT_US / 1e6)
        reply, seconds = await timed(caller.get("/readyz"))
        assert reply.status_code == 503
        checks = {"database": True, "jobs_writable": False, "shards_open": True}
        assert reply.json()["checks"] == checks
        assert seconds < IN_TIME_SECONDS
    await asyncio.sleep(KEPT_US / 1e6)
    assert (await caller.get("/readyz")).status_code == 200


async def test_a_crowd_that_asks_whether_it_is_ready_takes_one_connection(
    postgres_server: Server, caller: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody needs a key for it, so it must not hold up those who have one."""
    async with beside(postgres_server) as connection, connection.transaction():
        await connection.execute("LOCK TABLE jobs IN SHARE MODE")
        await asyncio.sleep(KEPT_US / 1e6)
        crowd = [asyncio.create_task(caller.get("/readyz")) for _ in range(12)]
        await asyncio.sleep(0.1)
        question = asyncio.create_task(caller.get("/v1/schedules"))
        first, _ = await asyncio.wait({*crowd, question}, return_when=asyncio.FIRST_COMPLETED)
        assert first == {question}
        assert {reply.status_code for reply in await asyncio.gather(*crowd)} == {503}
        monkeypatch.setattr(readiness, "KEPT_US", 60_000_000)
        late, seconds = await timed(caller.get("/readyz"))  # shares the answer of a moment ago
        assert (late.status_code, seconds < readiness.LOCK_SECONDS_MAX) == (503, True)


async def test_new_types_in_eight_schedules_at_once(
    own_house: House, caller: httpx2.AsyncClient
) -> None:
    replies = await asyncio.gather(
        *(
            caller.put(f"/v1/schedules/s{n}", json={"cron": "0 3 * * *", "type": f"brand.new.{n}"})
            for n in range(8)
        )
    )
    assert [reply.status_code for reply in replies] == [201] * 8
    assert (await caller.get("/v1/schedules")).status_code == 200
    await asyncio.sleep(KEPT_US / 1e6)
    assert (await caller.get("/readyz")).status_code == 200
