"""Autoscaling over HTTP: what is said of pools, what is decided, and who gets no more jobs."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.worker import HandWorker

from fairway.services.platform import Platform


class Named(HandWorker):
    """One of several in a pool."""

    def __init__(self, client: httpx2.AsyncClient, name: str) -> None:
        super().__init__(client)
        self.name = name

    async def post(self, **message: Any) -> httpx2.Response:
        body = {"session": self.session, **message}
        return await self.client.post(f"/v1/workers/{self.name}/exchange", json=body)


class Scene(NamedTuple):
    """A pool of a test's own."""

    house: House
    operator: httpx2.AsyncClient
    pool: str

    @property
    def path(self) -> str:
        return f"/v1/autoscale/{self.pool}"

    async def put(self, **settings: Any) -> dict[str, Any]:
        reply = await self.operator.put(self.path, json={"mode": "on"} | settings)
        assert reply.status_code == 200, reply.text
        found: dict[str, Any] = reply.json()
        return found

    async def until(self, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        async with asyncio.timeout(60):
            while True:
                self.house.inside(_look_now)
                found: dict[str, Any] = (await self.operator.get(self.path)).json()
                if is_so(found):
                    return found
                await asyncio.sleep(0.05)

    async def looks(self, count: int) -> dict[str, Any]:
        """So many times something could have been decided."""
        found: dict[str, Any] = {}
        for _ in range(count):
            await asyncio.to_thread(self.house.inside, _decide_once)
            found = (await self.operator.get(self.path)).json()
        return found

    async def decisions(self) -> list[dict[str, Any]]:
        reply = await self.operator.get("/v1/autoscale/decisions", params={"pool": self.pool})
        items: list[dict[str, Any]] = reply.json()["items"]
        return items

    @asynccontextmanager
    async def worker(self, name: str, slots: int = 1) -> AsyncIterator[Named]:
        key = self.house.new_key({"scope": "worker"})
        async with self.house.caller(key) as client:
            worker = Named(client, f"{self.pool}-{name}")
            await worker.hello(slots=slots, pool=self.pool)
            yield worker
            await worker.leave()


async def _look_now(platform: Platform) -> None:
    for name in ("gauges", "autoscale"):
        platform.loops[name].wake()


async def _decide_once(platform: Platform) -> None:
    """A look that begins now, and whatever is decided from it."""
    for _ in range(2):  # one may have been under way
        news = platform.insight.board.changed
        platform.loops["gauges"].wake()
        await news.wait()
    await platform.insight.autoscaling.steps()["autoscale"](0)


@pytest.fixture
async def scene(house: House, operator: httpx2.AsyncClient) -> AsyncIterator[Scene]:
    pool = f"p-{secrets.token_hex(4)}"
    assert (await operator.put(f"/v1/pools/{pool}", json={"slots": 1})).status_code == 200
    yield Scene(house, operator, pool)
    await operator.put(f"/v1/autoscale/{pool}", json={"mode": "off"})


async def submit(tenant: httpx2.AsyncClient, scene: Scene, type_: str, count: int) -> None:
    jobs = [{"type": type_, "pool": scene.pool}] * count
    reply = await tenant.post("/v1/jobs/batch", json={"jobs": jobs})
    assert reply.status_code in (200, 202), reply.text


async def test_a_pool_is_off_until_somebody_says_otherwise(scene: Scene) -> None:
    found = (await scene.operator.get("/v1/autoscale")).json()["pools"]
    (own,) = [one for one in found if one["pool"] == scene.pool]
    assert own["mode"] == "off"
    assert {"short", "medium", "long"} < {one["pool"] for one in found}
    said = await scene.put(mode="dry_run", minimum_workers=2, maximum_workers=3)
    assert (said["mode"], said["minimum_workers"], said["maximum_workers"]) == ("dry_run", 2, 3)


async def test_what_was_turned_off_stays_so_when_a_server_begins_again(scene: Scene) -> None:
    """Also where what was said is what holds where nobody said anything."""
    found = (await scene.operator.get("/v1/autoscale")).json()["pools"]
    for one in found:
        await scene.operator.put(f"/v1/autoscale/{one['pool']}", json={"mode": "off"})

    async def begin(platform: Platform) -> None:
        await platform.insight.autoscaling.begin(4)

    await asyncio.to_thread(scene.house.inside, begin)
    found = (await scene.operator.get("/v1/autoscale")).json()["pools"]
    assert {one["mode"] for one in found} == {"off"}


async def test_slips_are_said(scene: Scene) -> None:
    put = scene.operator.put
    wrong = {"mode": "on", "minimum_workers": 5, "maximum_workers": 2}
    problem(await put(scene.path, json=wrong), 422, "INVALID_REQUEST", "/minimum_workers")
    problem(await put("/v1/autoscale/none", json={"mode": "on"}), 404, "NOT_FOUND")
    off = await put(f"{scene.path}/override", json={"workers": 1})
    assert "turn it on" in problem(off, 422, "INVALID_REQUEST", "/workers")["detail"]
    await scene.put(maximum_workers=2)
    beyond = await put(f"{scene.path}/override", json={"workers": 3})
    assert "2 workers at most" in problem(beyond, 422, "INVALID_REQUEST", "/workers")["detail"]
    problem(await scene.operator.delete(f"{scene.path}/override"), 404, "NOT_FOUND")
    wrong_page = await scene.operator.get("/v1/autoscale/decisions?cursor=x")
    problem(wrong_page, 400, "INVALID_CURSOR")


async def test_backlog_that_could_run_wants_workers(
    scene: Scene, tenant: httpx2.AsyncClient
) -> None:
    await scene.put(minimum_workers=0, maximum_workers=4)
    async with scene.worker("a") as worker:
        await submit(tenant, scene, worker.type, 20)
        await worker.lease()
        found = await scene.until(lambda one: one["wanted_workers"] > 1)
        assert found["busy_workers"] == found["workers"] == found["slots"] == 1
        assert found["utilisation"] == 1.0
        assert found["backlog_slot_seconds"] > 0
        (last, *_) = await scene.decisions()
        assert last["code"] in ("BACKLOG", "OLDEST_AGE", "MAXIMUM")
        assert last["to_workers"] == found["wanted_workers"] > last["from_workers"]
        assert last["facts"]["busy_slots"] == 1
        assert not last["dry_run"]
        assert "slot-seconds could run" in last["reason"]


async def test_types_that_nobody_runs_bring_one_worker_and_no_fleet(
    scene: Scene, house: House
) -> None:
    await scene.put(minimum_workers=0, maximum_workers=9)
    async with house.caller(house.new_tenant()[1]) as tenant:
        await submit(tenant, scene, "nobodys", 100)
    await scene.until(lambda one: one["wanted_workers"] > 0)
    found = await scene.looks(3)
    assert (found["workers"], found["wanted_workers"]) == (0, 1)


async def test_what_a_tenants_own_workers_run_wants_no_fleet(scene: Scene, house: House) -> None:
    """The fleet could not run it: it would come in vain, and stay."""
    await scene.put(minimum_workers=0, maximum_workers=9)
    name, key = house.new_tenant()
    own_key = house.new_key({"scope": "worker", "tenant": name})
    async with house.caller(key) as tenant, house.caller(own_key) as client:
        own = Named(client, f"{scene.pool}-own")
        await own.hello(slots=1, pool=scene.pool)
        await submit(tenant, scene, own.type, 100)
        await own.lease()
        found = await scene.looks(3)
        assert (found["backlog_slot_seconds"], found["wanted_workers"]) == (0, 0)
        assert await scene.decisions() == []
        await own.leave()


async def test_capped_and_paused_backlog_wants_none(scene: Scene, house: House) -> None:
    """A tenant at its cap, and one that is paused, with many jobs each: all of it stays."""
    await scene.put(minimum_workers=0, maximum_workers=9)
    _, key = house.new_tenant(cap=1)
    paused, paused_key = house.new_tenant()
    await scene.operator.post("/v1/pauses", json={"tenant": paused})
    async with (
        house.caller(key) as capped,
        house.caller(paused_key) as held,
        scene.worker("a", slots=8) as worker,
    ):
        await submit(capped, scene, worker.type, 30)
        await submit(held, scene, worker.type, 30)
        await worker.lease()
        await scene.until(lambda one: one["busy_workers"] == 1)
        found = await scene.looks(3)
        assert (found["workers"], found["wanted_workers"]) == (1, 1)
        assert found["backlog_slot_seconds"] == 0
        assert found["oldest_runnable_age_seconds"] == 0
        assert await scene.decisions() == []


async def test_a_worker_that_is_spared_gets_no_more_jobs(
    scene: Scene, tenant: httpx2.AsyncClient
) -> None:
    await scene.put(minimum_workers=0, maximum_workers=4)
    async with scene.worker("a") as busy, scene.worker("b") as idle:
        idle.type = busy.type
        await idle.hello(pool=scene.pool)
        await submit(tenant, scene, busy.type, 1)
        await busy.lease()
        await scene.until(lambda one: one["workers"] == 2 and one["wanted_workers"] == 2)
        override = f"{scene.path}/override"
        reply = await scene.operator.put(override, json={"workers": 0, "for_seconds": 600})
        assert reply.json()["override"]["workers"] == 0
        found = await scene.until(lambda one: one["wanted_workers"] == 1)
        assert found["may_go"] == [idle.name], "never the busy one"
        (last, *_) = await scene.decisions()
        assert (last["code"], last["to_workers"]) == ("OVERRIDE", 1)
        await submit(tenant, scene, busy.type, 1)
        heard = await idle.say(wait_ms=200)
        assert not heard.get("leases")
        assert (await scene.operator.delete(override)).json()["override"] is None
        await scene.put(minimum_workers=2, maximum_workers=4)
        await scene.until(lambda one: one["may_go"] == [])
        assert await idle.lease(), "it is needed again"


async def test_a_dry_run_closes_nobody(scene: Scene) -> None:
    await scene.put(mode="dry_run", minimum_workers=0, maximum_workers=4)
    async with scene.worker("a"):
        await scene.until(lambda one: one["workers"] == 1)
        reply = await scene.operator.put(f"{scene.path}/override", json={"workers": 0})
        assert reply.status_code == 200
        found = await scene.until(lambda one: one["wanted_workers"] == 0)
        assert found["may_go"] == []
        assert (await scene.decisions())[0]["dry_run"]


async def test_decisions_come_in_pages(scene: Scene) -> None:
    await scene.put(minimum_workers=0, maximum_workers=9)
    for workers in (3, 5, 7):
        await scene.operator.put(f"{scene.path}/override", json={"workers": workers})
        await scene.until(lambda one, many=workers: one["wanted_workers"] == many)  # type: ignore[misc]
    query: dict[str, Any] = {"pool": scene.pool, "limit": 2}
    first = (await scene.operator.get("/v1/autoscale/decisions", params=query)).json()
    assert [one["to_workers"] for one in first["items"]] == [7, 5]
    query["cursor"] = first["next_cursor"]
    second = (await scene.operator.get("/v1/autoscale/decisions", params=query)).json()
    assert [one["to_workers"] for one in second["items"]] == [3]
    assert second["next_cursor"] is None


async def test_a_tenants_own_worker_sees_no_fleet(scene: Scene, house: House) -> None:
    name, _ = house.new_tenant()
    for body, status in (({"scope": "worker"}, 200), ({"scope": "worker", "tenant": name}, 404)):
        async with house.caller(house.new_key(body)) as worker:
            assert (await worker.get(scene.path)).status_code == status
            seen = (await worker.get("/v1/autoscale")).json()["pools"]
            assert bool(seen) == (status == 200)
