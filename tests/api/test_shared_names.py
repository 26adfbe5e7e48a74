"""One tenant floods every name there is, through every door; for the others nothing changes."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs
from tests.api.house import House, own_house, problem
from tests.api.worker import HandWorker
from tests.postgres import Server, connected

from fairway.services.registry import type_names
from fairway.worker.keeper import Keeper
from fairway.worker.options import WorkerOptions

RICH = {"tier": "enterprise"}
DAILY = {"cron": "0 9 * * *", "timezone": "UTC", "payload": {}, "paused": True}
ROUNDS = 8
SHARED_MAX, TENANT_MAX = type_names.SHARED_NAMES_MAX, type_names.TENANT_NAMES_MAX

Door = Callable[[int], Coroutine[Any, Any, httpx2.Response]]


@pytest.fixture(scope="module")
def house(postgres_server: Server) -> Iterator[House]:
    """A server of our own: the names of this one are for us to fill."""
    with own_house(postgres_server, "shared_names_tests") as house:
        yield house


class Party:
    """A tenant with a worker of its own."""

    def __init__(self, name: str, client: httpx2.AsyncClient, own: HandWorker) -> None:
        self.name, self.client, self.own = name, client, own

    async def batch(self, types: list[str], **more: Any) -> httpx2.Response:
        jobs = [{"type": one, "payload": {}, **more} for one in types]
        return await self.client.post("/v1/jobs/batch", json={"jobs": jobs})


@asynccontextmanager
async def party(house: House) -> AsyncIterator[Party]:
    name, key = house.new_tenant(**RICH)
    own_key = house.new_key({"scope": "worker", "tenant": name})
    async with house.caller(key) as client, house.caller(own_key) as own:
        yield Party(name, client, HandWorker(own))


async def greet(worker: HandWorker, types: list[str], **more: Any) -> dict[str, Any]:
    hello = {"types": [{"name": one} for one in types], "slots": {"short": 1}, **more}
    return await worker.say(hello=hello, running=[])


async def names_of(house: House, tenant: str) -> dict[bool, set[str]]:
    """What counts for a tenant: of its jobs, and of its own workers."""
    async with connected(house.dsn) as connection:
        found = await connection.fetch(
            "SELECT types.name, named.by_worker FROM tenant_types named"
            " JOIN job_types types ON types.id = named.type"
            " JOIN tenants ON tenants.id = named.tenant WHERE tenants.name = $1",
            tenant,
        )
    return {
        kind: {row["name"] for row in found if row["by_worker"] == kind} for kind in (False, True)
    }


async def count_shared(house: House) -> int:
    async with connected(house.dsn) as connection:
        found: int = await connection.fetchval("SELECT count(*) FROM job_types WHERE shared")
    return found


def doors(mallory: Party) -> dict[str, Door]:
    """Everything that takes a name from a tenant, each with a name that nobody has used."""
    client, own = mallory.client, mallory.own

    def job(n: int, **more: Any) -> dict[str, Any]:
        return {"type": f"m.{n}", "payload": {}, **more}

    def hello(n: int) -> dict[str, Any]:
        types = [{"name": f"m.run.{n}.{k}"} for k in range(2000)]
        labels, warm = [f"l{n}.{k}" for k in range(100)], [f"w{n}.{k}" for k in range(1000)]
        return {"types": types, "slots": {"short": 1}, "labels": labels, "warm_keys": warm}

    return {
        "job": lambda n: client.post("/v1/jobs", json=job(n, fair_key=f"f{n}")),
        "key": lambda n: client.post("/v1/jobs", json=job(n), headers={"idempotency-key": f"k{n}"}),
        "batch": lambda n: mallory.batch([f"m.{n}.{k}" for k in range(50)]),
        "large batch": lambda n: mallory.batch([f"m.l.{n}.{k}" for k in range(5000)]),
        "schedule": lambda n: client.put(f"/v1/schedules/s{n}", json=DAILY | {"type": f"m.s.{n}"}),
        "no schedule": lambda n: client.delete(f"/v1/schedules/s{n - 9}"),
        "pause": lambda n: client.post("/v1/pauses", json={"type": f"m.p.{n}"}),
        "resume": lambda n: client.delete("/v1/pauses", params={"type": f"m.p.{n - 11}"}),
        "resume nothing": lambda n: client.delete("/v1/pauses", params={"type": f"m.r.{n}"}),
        "list": lambda n: client.get("/v1/jobs", params={"type": f"m.q.{n}"}),
        "dead": lambda n: client.get("/v1/dead-letters", params={"type": f"m.q.{n}"}),
        "quarantine": lambda n: client.delete(f"/v1/quarantines/m.q.{n}"),
        "hello": lambda n: own.post(hello=hello(n), running=[]),
        "pool": lambda n: client.post("/v1/jobs", json=job(n, pool=f"p{n}")),
    }


@asynccontextmanager
async def flooding(mallory: Party) -> AsyncIterator[dict[str, set[int]]]:
    """All doors at once, again and again; the statuses that each door answered."""
    answers: dict[str, set[int]] = {}
    numbers = itertools.count(100)

    async def through(name: str, door: Door) -> None:
        while True:
            answers.setdefault(name, set()).add((await door(next(numbers))).status_code)

    floods = [asyncio.create_task(through(*one)) for one in doors(mallory).items()]
    try:
        yield answers
    finally:
        for one in floods:
            one.cancel()
        ended = await asyncio.gather(*floods, return_exceptions=True)
        assert [one for one in ended if not isinstance(one, asyncio.CancelledError)] == []


async def live(victim: Party, shared: HandWorker, n: int) -> None:
    """What a tenant and those who run the platform do on any day, each time with new names."""
    mine, client = f"v{n}", victim.client
    taken = await client.post("/v1/jobs", json={"type": f"{mine}.job", "payload": {}})
    assert taken.status_code == 202, taken.text
    batch = await victim.batch([f"{mine}.b{k}" for k in range(5)])
    assert batch.status_code == 200, batch.text
    put = await client.put(f"/v1/schedules/{mine}", json=DAILY | {"type": f"{mine}.daily"})
    assert put.status_code == 201, put.text
    paused = await client.post("/v1/pauses", json={"type": f"{mine}.paused"})
    assert paused.status_code == 201, paused.text
    heard = await greet(victim.own, [f"{mine}.own", f"{mine}.job"])
    assert "refused_types" not in heard
    ran = (heard.get("leases") or [await victim.own.lease()])[0]
    await victim.own.tell(victim.own.report(ran))
    assert (ran["type"], ran["tenant"]) == (f"{mine}.job", victim.name)
    victim.own.inbox.clear()
    assert "refused_types" not in await greet(shared, [f"{mine}.deployed"])
    for name in (f"{mine}.deployed", f"{mine}.own"):
        again = await client.post("/v1/jobs", json={"type": name, "payload": {}})
        assert again.status_code == 202, again.text


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_a_flood_of_names_changes_nothing_for_others(house: House) -> None:
    async with AsyncExitStack() as stack:
        mallory, victim = [await stack.enter_async_context(party(house)) for _ in range(2)]
        staff = await stack.enter_async_context(house.caller(house.new_key({"scope": "worker"})))
        shared = HandWorker(staff)
        before = (await victim.client.get("/v1/limits")).json()
        async with flooding(mallory) as answers, asyncio.timeout(200):
            for n in itertools.count():
                # A batch is refused whole while single names still fit: only these say "full".
                is_full = 422 in answers.get("job", ()) and len(answers) == len(doors(mallory))
                await live(victim, shared, n)
                if is_full and n >= ROUNDS:
                    break
        after = (await victim.client.get("/v1/limits")).json()
        names, floods = await names_of(house, victim.name), await names_of(house, mallory.name)
        shared_count = await count_shared(house)
    rounds = range(n + 1)
    kinds = ("b0", "b1", "b2", "b3", "b4", "daily", "paused")
    assert names[False] == {f"v{n}.{kind}" for n in rounds for kind in kinds}
    assert names[True] == {f"v{n}.{kind}" for n in rounds for kind in ("own", "job")}
    assert (len(floods[False]), len(floods[True])) == (TENANT_MAX, TENANT_MAX)
    assert shared_count == len(rounds)
    assert {one for name, found in answers.items() for one in found if found} <= {
        200, 201, 202, 204, 404, 422, 429
    }  # fmt: skip
    for name in ("rate_per_second", "burst", "depth_limit"):
        assert before[name] == after[name]


async def test_ten_thousand_types_in_one_batch_are_refused_whole(house: House) -> None:
    async with party(house) as mallory, party(house) as victim:
        reply = await mallory.batch([f"flood.{n}" for n in range(10_000)])
        told = problem(reply, 422, "TOO_MANY_JOB_TYPES", "/type")
        assert f"{TENANT_MAX} job types" in told["detail"]
        assert await names_of(house, mallory.name) == {False: set(), True: set()}
        reply = await mallory.batch([f"flood.{n}" for n in range(TENANT_MAX)])
        assert reply.status_code == 200, reply.text
        for door in ("job", "batch", "schedule", "pause"):
            problem(await doors(mallory)[door](1), 422, "TOO_MANY_JOB_TYPES", "/type")
        known = await mallory.client.post("/v1/jobs", json={"type": "flood.7", "payload": {}})
        assert known.status_code == 202
        heard = await greet(mallory.own, ["its.own"])
        assert "refused_types" not in heard
        assert (await victim.batch(["calm"])).status_code == 200


async def test_with_the_tenants_room_full_workers_bring_new_types(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type_names, "TENANTS_NAMES_MAX", 0)
    async with (
        party(house) as tenant,
        house.caller(house.new_key({"scope": "worker"})) as staff,
        house.caller(house.operator_key) as operator,
    ):
        problem(await tenant.batch(["no.room"]), 422, "TOO_MANY_JOB_TYPES", "/type")
        assert "refused_types" not in await greet(HandWorker(staff), ["brought.by.worker"])
        put = await operator.put("/v1/job-types/brought.by.hand", json={"attempts": 3})
        assert put.status_code == 200, put.text
        for name in ("brought.by.worker", "brought.by.hand"):
            assert (await tenant.batch([name])).status_code == 200


async def test_concurrent_hellos_do_not_overrun_the_bound(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = await count_shared(house) + 25
    monkeypatch.setattr(type_names, "SHARED_NAMES_MAX", most)
    async with house.caller(house.new_key({"scope": "worker"})) as staff:
        workers = [HandWorker(staff) for _ in range(10)]
        said = [[f"hello.{n}.{k}" for k in range(10)] for n in range(10)]
        heard = await asyncio.gather(*map(greet, workers, said))
        assert await count_shared(house) == most
        assert sum(len(one.get("refused_types", ())) for one in heard) == 75
        for worker in workers:
            await worker.leave()


async def test_a_worker_that_is_refused_a_type_runs_the_rest(
    house: House, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """The program itself, with a runner: it stays, says so, and does what it can."""
    monkeypatch.setenv("ACCEPTANCE_LEDGER", str(tmp_path / "ledger"))
    async with party(house) as tenant, house.caller(house.operator_key) as operator:
        put = await operator.put("/v1/job-types/nap", json={})
        assert put.status_code == 200, put.text
        monkeypatch.setattr(type_names, "SHARED_NAMES_MAX", await count_shared(house))
        options = WorkerOptions(
            target="tests.acceptance.jobs:app", name="one", urls=[house.url], slots={"short": 2},
            api_key=house.new_key({"scope": "worker"}),
        )  # fmt: skip
        with capture_logs() as lines:
            life = asyncio.create_task(Keeper(options).run())
            done = await tenant.client.post(
                "/v1/jobs",
                json={"type": "nap", "payload": {"seconds": 0}},
                headers={"prefer": "wait=20"},
            )
            assert not life.done()
            life.cancel()
            await asyncio.gather(life, return_exceptions=True)
        assert done.json()["state"] == "succeeded", done.text
        (told,) = (line for line in lines if "refused and not run" in line["event"])
        assert told["types"]
        assert "nap" not in told["types"]
