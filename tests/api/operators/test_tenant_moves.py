"""A tenant with jobs in every state is moved to another shard: nothing is lost or runs twice."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import httpx2
from tests.api.house import House, open_house, problem
from tests.api.worker import HandWorker

from fairway.core.ids import shard_of
from fairway.store.sql import load

TO = 6
#: Tables of which rows go along.
MOVED = {
    table
    for name, statement in load("tenant_moves.sql").items()
    for table in re.findall(r"UPDATE (\w+)(?: AS late)? SET shard", statement.text)
    if name.startswith("move_")
}


async def test_all_of_a_tenant_is_found_in_its_new_shard(database_url: str) -> None:
    with open_house(database_url, shard_count=4) as house:
        name, key = house.new_tenant()
        worker_key = house.new_key({"scope": "worker"})
        async with (
            house.caller(house.operator_key) as operator,
            house.caller(key) as tenant,
            house.caller(worker_key) as client,
        ):
            assert (await operator.post("/v1/shards/split", json={"to": 8})).status_code == 200
            worker = HandWorker(client)
            made = await everything(tenant, worker)
            home = shard_of(made["plain"])
            problem(await move(operator, name, 0), 409, "CONFLICT")
            problem(await move(operator, name, home), 409, "CONFLICT")
            problem(await move(operator, "nobody", TO), 404, "NOT_FOUND")
            assert (await move(operator, name, TO)).status_code == 202
            problem(await move(operator, name, TO), 409, "CONFLICT")
            another = {"name": "another", "shard": TO}
            problem(await operator.post("/v1/tenants", json=another), 409, "CONFLICT")
            assert "move_tenant" in (await operator.get("/v1/audit")).text
            refused = await tenant.get(f"/v1/jobs/{made['plain']}")
            problem(refused, 503, "TENANT_MOVING")
            assert refused.headers["retry-after"] == "1"
            await moved(operator)
            await until_answered(tenant)
            assert await left_in(database_url, home, house, name) == {}
            finished, begun = await audited(operator)
            assert (finished[0], begun[0]) == ("finish_move", "begin_move")
            assert begun[1] == f"Its rows go from shard {home} to shard {TO} now."
            await look_at_everything(tenant, made, home)
            await run_the_rest(tenant, worker, made)


async def move(operator: httpx2.AsyncClient, name: str, to: int) -> httpx2.Response:
    return await operator.post("/v1/shards/move", json={"tenant": name, "to": to})


async def until(holds: Callable[[], Awaitable[bool]], seconds: float = 30) -> None:
    async with asyncio.timeout(seconds):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.05)


async def moved(operator: httpx2.AsyncClient) -> None:
    async def is_moved() -> bool:
        found = (await operator.get("/v1/shards")).json()
        is_open: bool = found["shards"][TO]["is_open"]
        return found["moves"][0]["state"] == "done" and is_open

    await until(is_moved)


async def until_answered(tenant: httpx2.AsyncClient) -> None:
    async def is_answered() -> bool:
        return (await tenant.get("/v1/jobs")).status_code != 503

    await until(is_answered)


async def everything(tenant: httpx2.AsyncClient, worker: HandWorker) -> dict[str, Any]:
    """Jobs in every state, and what else a tenant has; by what they are."""
    kind, made = {"type": worker.type}, dict[str, Any]()

    async def submit(name: str, headers: dict[str, str] | None = None, **more: Any) -> None:
        reply = await tenant.post("/v1/jobs", json=kind | more, headers=headers)
        assert reply.status_code == 202, reply.text
        made[name] = reply.json()["id"]

    await worker.hello()
    await submit("done")
    await worker.run(result={"a": 1})
    await submit("dead")
    await worker.run(kind="failed", failure="permanent", error={"type": "E", "message": "no"})
    await worker.hello(slots=0)
    await submit("plain")
    await submit("keyed", {"idempotency-key": "k-1"})
    await submit("unique", unique={"key": "u-1"})
    await submit("later", delay_seconds=3600)
    flow = {"kind": "group", "jobs": [kind, kind], "callback": kind}
    reply = await tenant.post("/v1/flows", json=flow)
    assert reply.status_code in (201, 202), reply.text
    made["flow"] = reply.json()["id"]
    schedule = {"type": worker.type, "every_seconds": 3600}
    reply = await tenant.put("/v1/schedules/hourly", json=schedule)
    assert reply.status_code in (200, 201), reply.text
    return made


async def look_at_everything(tenant: httpx2.AsyncClient, made: dict[str, Any], home: int) -> None:
    states = {"done": "succeeded", "dead": "dead", "plain": "queued", "later": "scheduled"}
    for name, state in states.items():
        found = (await tenant.get(f"/v1/jobs/{made[name]}")).json()
        assert (name, found.get("state")) == (name, state), found
        assert shard_of(found["id"]) == home
    listed = (await tenant.get("/v1/jobs?limit=100")).json()["jobs"]
    assert len(listed) == 9
    kind = {"type": (await tenant.get(f"/v1/jobs/{made['keyed']}")).json()["type"]}
    again = await tenant.post("/v1/jobs", json=kind, headers={"idempotency-key": "k-1"})
    assert again.json()["id"] == made["keyed"]
    double = await tenant.post("/v1/jobs", json=kind | {"unique": {"key": "u-1"}})
    assert double.json().get("id", made["unique"]) == made["unique"], double.text
    assert (await tenant.get(f"/v1/flows/{made['flow']}")).json()["id"] == made["flow"]
    assert (await tenant.get("/v1/schedules/hourly")).status_code == 200
    letters = (await tenant.get("/v1/dead-letters")).json()
    assert made["dead"] in str(letters)
    assert (await tenant.post(f"/v1/dead-letters/{made['dead']}/replay")).status_code == 202
    sooner = await tenant.patch(f"/v1/jobs/{made['later']}", json={"delay_seconds": 1800})
    assert sooner.status_code == 200, sooner.text
    assert (await tenant.delete(f"/v1/jobs/{made['later']}")).status_code == 200
    fresh = (await tenant.post("/v1/jobs", json=kind)).json()["id"]
    assert shard_of(fresh) == TO


async def run_the_rest(
    tenant: httpx2.AsyncClient, worker: HandWorker, made: dict[str, Any]
) -> None:
    """What waits starts once each: of the old ids, the replayed one, the flow's, and a new one."""
    await worker.hello()
    ran = [(await worker.run(result=None))["job"] for _ in range(8)]
    assert len(set(ran)) == 8
    assert {made[one] for one in ("plain", "keyed", "unique", "dead")} <= set(ran)
    await until_ended(tenant, made["flow"])
    await worker.leave()


async def until_ended(tenant: httpx2.AsyncClient, flow: str) -> None:
    async def is_over() -> bool:
        return bool((await tenant.get(f"/v1/flows/{flow}")).json().get("finished_at"))

    await until(is_over)


async def left_in(url: str, shard: int, house: House, name: str) -> dict[str, int]:
    """Tables that have rows of the tenant where it was."""
    number, connection = house.platform.directory.tenant_ids[name], await asyncpg.connect(url)
    try:
        counts = {
            table: await connection.fetchval(
                f"SELECT count(*) FROM {table} WHERE shard = $1 AND tenant = $2", shard, number
            )
            for table in MOVED
        }
    finally:
        await connection.close()
    return {table: count for table, count in counts.items() if count}


async def test_no_table_is_forgotten(database_url: str) -> None:
    """Every table with rows of tenants in shards goes along; sessions are their servers'."""
    with open_house(database_url):
        pass
    connection = await asyncpg.connect(database_url)
    try:
        found = await connection.fetch(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition AND"
            " 2 = (SELECT count(*) FROM pg_attribute WHERE attrelid = pg_class.oid"
            "      AND attname IN ('shard', 'tenant') AND NOT attisdropped)"
        )
    finally:
        await connection.close()
    assert {row["relname"] for row in found} - {"sessions"} == MOVED


async def test_of_two_who_ask_at_one_moment_one_is_told_to_wait(database_url: str) -> None:
    with open_house(database_url, shard_count=8) as house:
        names = [house.new_tenant()[0] for _ in range(2)]
        async with house.caller(house.operator_key) as operator:
            shards = (await operator.get("/v1/shards")).json()["shards"]
            free = [one["shard"] for one in shards if one["shard"] and not one["tenants"]]
            ways = [(names[0], free[0]), (names[1], free[1]), (names[0], free[2])]
            replies = await asyncio.gather(*[surely_asked(operator, *way) for way in ways])
            assert sorted(one.status_code for one in replies) == [202, 409, 409]
            for one in replies:
                if one.status_code == 409:
                    assert "one tenant moves at a time" in problem(one, 409, "CONFLICT")["detail"]
            (under_way,) = (await operator.get("/v1/shards")).json()["moves"]
            cancelled = await operator.post(
                "/v1/shards/move/cancel", json={"tenant": under_way["tenant"]}
            )
            assert cancelled.status_code == 202


async def test_a_shard_of_a_deleted_tenant_is_refused_with_its_name(database_url: str) -> None:
    """`GET /v1/shards` tells of no tenant there, so the refusal has to."""
    with open_house(database_url, shard_count=8) as house:
        (name, _), (gone, _) = house.new_tenant(), house.new_tenant()
        async with house.caller(house.operator_key) as operator:
            (there,) = (await operator.get(f"/v1/tenants/{gone}")).json()["shards"]
            assert (await operator.delete(f"/v1/tenants/{gone}?suspend=true")).is_success
            assert (await operator.get("/v1/shards")).json()["shards"][there]["tenants"] == 0
            refused = problem(await move(operator, name, there), 409, "CONFLICT")
            assert f"keeps what is left of {gone}, which was deleted" in refused["detail"]


async def surely_asked(operator: httpx2.AsyncClient, name: str, to: int) -> httpx2.Response:
    """A busy machine may say "not now" first."""
    while True:
        reply = await move(operator, name, to)
        if reply.status_code != 503:
            return reply
        await asyncio.sleep(0.1)


async def audited(operator: httpx2.AsyncClient) -> list[tuple[str, str]]:
    """What became of moves by themselves, the newest first."""
    found = (await operator.get("/v1/audit?actor=platform")).json()["entries"]
    return [(one["action"], one["detail"]) for one in found if one["action"].endswith("_move")]


async def is_over(operator: httpx2.AsyncClient) -> bool:
    return (await operator.get("/v1/shards")).json()["moves"][0]["finished_at"] is not None


async def says(operator: httpx2.AsyncClient, note: str) -> bool:
    return bool((await operator.get("/v1/shards")).json()["moves"][0]["note"] == note)


async def test_a_move_whose_jobs_run_on_is_cancelled_or_called_off(database_url: str) -> None:
    with open_house(database_url, shard_count=4) as house:
        name, key = house.new_tenant()
        async with (
            house.caller(house.operator_key) as operator,
            house.caller(key) as tenant,
            house.caller(house.new_key({"scope": "worker"})) as client,
        ):
            await operator.post("/v1/shards/split", json={"to": 8})
            worker = HandWorker(client)
            await worker.hello()
            job = (await tenant.post("/v1/jobs", json={"type": worker.type})).json()["id"]
            lease = await worker.lease()
            asked = {"tenant": name, "to": TO, "wait_seconds": 3600}
            assert (await operator.post("/v1/shards/move", json=asked)).status_code == 202
            await until(lambda: says(operator, f"Jobs of the tenant run: 1 ({job})."))
            again = {"tenant": name}
            assert (await operator.post("/v1/shards/move/cancel", json=again)).status_code == 202
            assert "cancel_move" in (await operator.get("/v1/audit")).text
            (off,) = (await operator.get("/v1/shards")).json()["moves"]
            assert off["state"] == "called_off"
            assert off["note"].startswith("Cancelled with the key '")
            refused = await operator.post("/v1/shards/move/cancel", json=again)
            problem(refused, 409, "CONFLICT")
            await until_answered(tenant)
            assert (await move(operator, name, TO)).status_code == 202
            connection = await asyncpg.connect(database_url)
            await connection.execute("UPDATE tenant_moves SET asked_at = now() - interval '1 hour'")
            await connection.close()
            await until(lambda: is_over(operator))
            off = (await operator.get("/v1/shards")).json()["moves"][0]
            assert off["state"] == "called_off"
            assert f"Jobs of the tenant ran on after 60 s: 1 ({job}). Ask" in off["note"]
            assert await audited(operator) == [("call_off_move", off["note"])]
            await until_answered(tenant)
            # A shard changed hands: a worker says then what it holds, as after any hand-over.
            await worker.hello(running=[worker.holding(lease)])
            await worker.tell(worker.report(lease, result=None))
            assert (await tenant.get(f"/v1/jobs/{job}")).json()["state"] == "succeeded"
            await worker.leave()
