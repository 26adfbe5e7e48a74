"""A tenant in several shards is one: its log, its webhooks, its bulk actions, its numbers."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import httpx2
from tests.api.events.socket_client import socket_to
from tests.api.events.test_stream import Stream
from tests.api.house import House, open_house, problem
from tests.postgres import connected
from tests.services.webhooks.receiver import Receiver, receiving

from fairway.core.ids import shard_of
from fairway.sdk.client.client import Client
from fairway.sdk.http.settings import ClientSettings
from fairway.sdk.logs.event_log import Wanted

SHARDS = 4
LATER = {"type": "never", "delay_seconds": 3600}
HOOKS = {"webhook_http": True, "webhook_private_networks": "127.0.0.0/8"}


async def test_it_is_one_in_all_that_each_shard_has_of_its_own(database_url: str) -> None:
    with open_house(database_url, shard_count=2 * SHARDS, **HOOKS) as house:
        name, key = house.new_tenant(shards=SHARDS)
        async with house.caller(key) as tenant, receiving() as receiver:
            hook = await _a_webhook_is_in_every_shard(tenant, receiver)
            jobs = await _made(tenant, 12)
            await _its_log_is_read_and_followed_as_one(house, key, tenant, jobs)
            await _events_of_all_shards_are_sent(tenant, receiver, hook, jobs)
            await _many_are_acted_on_as_one(tenant, jobs)
            await _its_numbers_are_live(tenant, name)
            await _one_shard_can_be_named(tenant)
            assert (await tenant.delete(f"/v1/webhooks/{hook}")).status_code == 204
            for place in range(SHARDS):
                named = {"fairway-part": str(place)}
                left = (await tenant.get("/v1/webhooks", headers=named)).json()
                assert left == {"webhooks": []}
        await _one_that_is_off_in_a_shard_hears_of_jobs_in_the_others(house)


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def _made(tenant: httpx2.AsyncClient, count: int) -> list[str]:
    jobs = [(await tenant.post("/v1/jobs", json=LATER)).json()["id"] for _ in range(count)]
    assert len({shard_of(job) for job in jobs}) == SHARDS
    return jobs


async def _a_webhook_is_in_every_shard(tenant: httpx2.AsyncClient, receiver: Receiver) -> str:
    """With one secret; and the log has what becomes of jobs, in every shard."""
    assert (await tenant.get("/v1/events/settings")).json() == {"job_events": False}
    wanted = {"url": receiver.url, "kinds": ["job.accepted"]}
    reply = await tenant.post("/v1/webhooks", json=wanted)
    assert reply.status_code == 201, reply.text
    made = reply.json()
    assert (await tenant.get("/v1/events/settings")).json() == {"job_events": True}
    secret = made.pop("secret")
    path = f"/v1/webhooks/{made['id']}"
    assert made["position"] == "0.0.0.0"
    assert (await tenant.get(path)).json() == made
    assert (await tenant.get("/v1/webhooks")).json() == {"webhooks": [made]}
    changed = (await tenant.patch(path, json={"description": "pager"})).json()
    assert changed["description"] == "pager"
    rotated = (await tenant.post(f"{path}/rotate", json={"overlap_seconds": 0})).json()
    assert rotated["secret"] not in ("", secret)
    for place in range(SHARDS):
        named = {"fairway-part": str(place)}
        (one,) = (await tenant.get("/v1/webhooks", headers=named)).json()["webhooks"]
        assert (one["description"], one["id"][-1]) == ("pager", str(place))
    return str(made["id"])


async def _its_log_is_read_and_followed_as_one(
    house: House, key: str, tenant: httpx2.AsyncClient, jobs: list[str]
) -> None:
    """By pages both ways, as a stream, on a socket, by the SDK: each event once, from anywhere."""
    events, after = list[dict[str, Any]](), "0"
    async with asyncio.timeout(30):
        while len(events) < len(jobs):
            page = (await tenant.get(f"/v1/events?limit=5&wait=5&after={after}")).json()
            events += page["events"]
            after = page["cursor"]
    assert sorted(one["job"] for one in events) == sorted(jobs), "each once"
    assert {one["part"] for one in events} == {*range(SHARDS)}
    middle = events[6]["cursor"]
    rest = (await tenant.get(f"/v1/events?after={middle}")).json()
    assert {one["job"] for one in rest["events"]} == {one["job"] for one in events[7:]}
    assert (rest["cursor"], rest["has_more"]) == (rest["end"], False)

    seen, below, has_more = list[str](), "", True
    while has_more:
        page = (await tenant.get(f"/v1/events?order=newest&limit=5{below}")).json()
        seen += [one["job"] for one in page["events"]]
        below, has_more = f"&after={page['cursor']}", page["has_more"]
    assert sorted(seen) == sorted(jobs)

    for wrong in ("4711", "1.2"):
        problem(await tenant.get(f"/v1/events?after={wrong}"), 422, "INVALID_REQUEST", "after")
    beyond = await tenant.get(f"/v1/events?after={'9' * 18}.0.0.0")
    problem(beyond, 400, "INVALID_CURSOR", "after")
    async with tenant.stream("GET", f"/v1/events/stream?after={middle}") as reply:
        told = await Stream(reply).next(len(jobs) - 7)
    assert {one.data["job"] for one in told} == {one["job"] for one in events[7:]}
    assert told[-1].id == rest["end"] == told[-1].data["cursor"]
    async with socket_to(house.port, key) as line:
        await line.send(subscribe="mine", after=middle)
        assert (await line.hear())["subscribed_at"] == middle
        heard = [(await line.hear())["event"]["job"] for _ in events[7:]]
    assert sorted(heard) == sorted(one["job"] for one in events[7:])
    client = Client(ClientSettings(url=house.url, api_key=key))
    followed = client.event_log.follow(events[9]["cursor"], Wanted(kind="job.*"))
    items = [await anext(followed) for _ in events[10:]]
    assert {one.resume_after for one in items} >= {rest["end"]}
    await client.aclose()


async def _events_of_all_shards_are_sent(
    tenant: httpx2.AsyncClient, receiver: Receiver, hook: str, jobs: list[str]
) -> None:
    """Under ids that differ, for a receiver drops what it has seen."""
    await _until(lambda: len(receiver.received) >= len(jobs))
    assert len({one.id for one in receiver.received}) == len(jobs)
    assert {one.message["data"]["job"] for one in receiver.received} == {*jobs}
    path = f"/v1/webhooks/{hook}"
    seen, cursor = list[str](), ""
    while True:
        page = (await tenant.get(f"{path}/deliveries?limit=5{cursor}")).json()
        seen += [one["id"] for one in page["deliveries"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert sorted(seen) == sorted(one.id for one in receiver.received)
    for delivery in seen:
        again = await tenant.post(f"{path}/deliveries/{delivery}/replay")
        assert (again.status_code, again.json()["id"]) == (202, delivery)
    await _until(lambda: min(Counter(one.id for one in receiver.received).values()) == 2)
    replay = {"since": "2026-01-01T00:00:00Z"}
    assert (await tenant.post(f"{path}/replay", json=replay)).json()["replayed"] == 0
    assert (await tenant.post(f"{path}/test")).status_code == 202


async def _many_are_acted_on_as_one(tenant: httpx2.AsyncClient, jobs: list[str]) -> None:
    cancel = {"act": "cancel", "filter": {"type": "never"}, "per_second": 100}
    count = (await tenant.post("/v1/bulk-actions", json=cancel | {"dry_run": True})).json()
    assert count == {"matched": len(jobs), "is_exact": True}
    begun = await tenant.post("/v1/bulk-actions", json=cancel)
    action = begun.json()
    assert (begun.status_code, action["matched"], action["per_second"]) == (202, len(jobs), 100)
    async with asyncio.timeout(30):
        while action["state"] == "running":
            await asyncio.sleep(0.05)
            action = (await tenant.get(begun.headers["location"])).json()
    assert (action["state"], action["done"]) == ("done", len(jobs))
    assert action["finished_at"] is not None
    assert (await tenant.get("/v1/bulk-actions")).json() == {"actions": [action]}
    problem(await tenant.post(f"{begun.headers['location']}/abort"), 409, "CONFLICT")
    left = (await tenant.get("/v1/jobs?state=scheduled")).json()["jobs"]
    assert left == []


async def _its_numbers_are_live(tenant: httpx2.AsyncClient, name: str) -> None:
    async with asyncio.timeout(30), tenant.stream("GET", "/v1/live") as reply:
        assert reply.status_code == 200
        async for line in reply.aiter_lines():
            if line.startswith("data: "):
                break
    assert json.loads(line.removeprefix("data: "))["tenant"] == name


async def _one_shard_can_be_named(tenant: httpx2.AsyncClient) -> None:
    found = Counter[int]()
    for place in range(SHARDS):
        named = {"fairway-part": str(place)}
        page = (await tenant.get("/v1/events?kind=job.accepted", headers=named)).json()
        assert isinstance(page["cursor"], int)
        found[place] += len(page["events"])
    assert found.total() == 12
    wrong = {"fairway-part": str(SHARDS)}
    problem(await tenant.get("/v1/events", headers=wrong), 409, "SEVERAL_SHARDS")
    hook = {"url": "https://93.184.216.34/hook", "enabled": False}
    path = f"/v1/webhooks/{(await tenant.post('/v1/webhooks', json=hook)).json()['id']}"
    calls = ("POST", "/v1/webhooks"), ("PATCH", path), ("POST", f"{path}/rotate"), ("DELETE", path)
    for method, where in calls:
        of_one = await tenant.request(method, where, json=hook, headers={"fairway-part": "1"})
        problem(of_one, 409, "SEVERAL_SHARDS")
    assert (await tenant.delete(path)).status_code == 204


async def _one_that_is_off_in_a_shard_hears_of_jobs_in_the_others(house: House) -> None:
    """As one is that the platform switched off where its receiver failed."""
    _, key = house.new_tenant(shards=2)
    second = {"fairway-part": "1"}
    async with house.caller(key) as tenant, connected(house.dsn) as connection:
        hook = {"url": "https://93.184.216.34/hook", "kinds": ["circuit.*"]}
        made = (await tenant.post("/v1/webhooks", json=hook)).json()["id"]
        path = f"/v1/webhooks/{made}"
        await connection.execute("UPDATE webhooks SET enabled = false WHERE id = $1::uuid", made)
        changed = await tenant.patch(path, json={"kinds": ["job.dead"]})
        assert (changed.status_code, changed.json()["enabled"]) == (200, False)
        settings = await tenant.get("/v1/events/settings", headers=second)
        assert settings.json() == {"job_events": True}
