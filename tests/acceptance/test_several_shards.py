"""A tenant in several shards, on two servers: accepted once, run once, seen as one."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Any

import asyncpg
import httpx2
import pytest
from tests.acceptance.house import House

from fairway.core.ids import shard_of
from fairway.store import leadership

SHARDS = 4
BATCH = 100
RATE = 8  # a second
NAP: dict[str, Any] = {"type": "nap", "pool": "short"}
LATER = NAP | {"delay_seconds": 3600}


class Big:
    """The house with two owners, and a tenant that has shards at both."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.accepted: dict[str, str] = {}  # by key: what it was answered with first
        self.plain: list[str] = []

    async def open(self) -> None:
        await self.house.found(SHARDS)
        await self.house.open(servers=2, pools=("short=40",))
        connection = await asyncpg.connect(self.house.dsn)
        try:
            async with asyncio.timeout(60):
                found: Counter[str] = Counter()
                while sorted(found.values()) != [2, 2]:  # they share the shards
                    await asyncio.sleep(0.1)
                    owners = await leadership.read_owners(connection)
                    found = Counter(one.owner_url for one in owners.values())
        finally:
            await connection.close()
        self.house.api_key = await self.tenant("big", tier="enterprise")

    async def tenant(self, name: str, **terms: Any) -> str:
        headers = {"authorization": f"Bearer {self.house.operator_key}"}
        body = {"name": name, "shards": SHARDS, **terms}
        reply = await self.house.call("POST", "/v1/tenants", json=body, headers=headers)
        assert reply.status_code == 201, reply.text
        return str(reply.json()["api_key"])

    async def post_plain(self, batches: int, singles: int) -> None:
        for number in range(batches):
            reply = await self._batch(number, {"jobs": [NAP] * BATCH})
            self.plain += [one["id"] for one in reply["items"]]
        for number in range(singles):
            url = self.house.urls[number % 2]
            one = await self.house.call("POST", "/v1/jobs", url, json=NAP)
            self.plain.append(one.json()["id"])

    async def post_keyed(self, batches: range, *, twice: bool) -> None:
        """Each batch at one server, and again at the other."""
        for number in batches:
            keys = [f"order-{number}-{place}" for place in range(BATCH)]
            body = {"jobs": [NAP] * BATCH, "idempotency_keys": keys}
            for turn in range(1 + twice):
                reply = await self._batch(number + turn, body)
                for key, one in zip(keys, reply["items"], strict=True):
                    assert self.accepted.setdefault(key, one["id"]) == one["id"], "accepted twice"

    async def _batch(self, turn: int, body: dict[str, Any]) -> dict[str, Any]:
        """Until all of it is accepted: what was refused for now, or not answered, is sent again."""
        while True:
            urls = self.house.urls
            try:
                reply = await self.house.call(
                    "POST", "/v1/jobs/batch", urls[turn % len(urls)], json=body
                )
                if reply.status_code == 200 and reply.json()["accepted"] == BATCH:
                    found: dict[str, Any] = reply.json()
                    return found
                told = reply.json()
                statuses = {one["status"] for one in told.get("items", [told])}
                assert statuses <= {202, 503}, reply.text
                assert "idempotency_keys" in body, reply.text
            except httpx2.HTTPError:
                turn += 1
            await asyncio.sleep(0.1)

    async def told(self, method: str, path: str, url: str, **options: Any) -> dict[str, Any]:
        """Asked again while a shard has no owner: a server that joins is given some."""
        async with asyncio.timeout(60):
            while True:
                reply = await self.house.call(method, path, url, **options)
                if reply.status_code != 503:
                    assert reply.status_code < 300, reply.text
                    found: dict[str, Any] = reply.json()
                    return found
                await asyncio.sleep(0.2)

    async def listed(self, query: str, url: str) -> list[str]:
        seen: list[str] = []
        cursor = ""
        while cursor is not None:
            more = f"&cursor={cursor}" if cursor else ""
            page = await self.told("GET", f"/v1/jobs?limit=200{query}{more}", url)
            seen += [one["id"] for one in page["jobs"]]
            cursor = page["next_cursor"]
        return seen


@pytest.mark.parametrize("batches", [2, pytest.param(20, marks=pytest.mark.slow)])
async def test_jobs_are_accepted_once_run_once_and_seen_as_one(
    house: House, figures: dict[str, str], batches: int
) -> None:
    big = Big(house)
    await big.open()
    await big.post_plain(batches, 10 * batches)
    await big.post_keyed(range(batches), twice=True)
    assert len({shard_of(job) for job in big.plain}) == SHARDS
    spread = Counter(shard_of(job) for job in big.accepted.values())
    assert max(spread.values()) < 1.5 * len(big.accepted) / SHARDS, spread

    await house.book.drained(90)
    await _is_seen_as_one_everywhere(big, [*big.plain, *big.accepted.values()])
    key, house.api_key = house.api_key, await big.tenant("slow", rate_per_second=RATE, burst=RATE)
    let_in, figures["several shards: a rate lets in"] = await _rate_holds(house)
    house.api_key = key

    posting = asyncio.create_task(big.post_keyed(range(batches, 2 * batches), twice=True))
    await asyncio.sleep(0.3)
    await house.servers.pop().kill()
    await _is_told_which_shard_is_away(house)
    await posting
    jobs = [*big.plain, *big.accepted.values()]
    verdict = await house.check([*jobs, *let_in], drain_seconds=90)
    assert len(jobs) == batches * (3 * BATCH + 10)
    figures[f"several shards: {len(jobs)} jobs, ran twice"] = str(verdict.ran_twice)
    assert sorted(await big.listed("&state=succeeded", house.urls[0])) == sorted(jobs)
    assert (await big.told("GET", "/v1/limits", house.urls[0]))["depth"] == 0, "all were taken over"
    await _many_are_cancelled_at_once(big)


async def _is_told_which_shard_is_away(house: House) -> None:
    """Until somebody has taken over: what needs owners says which has none, the rest goes on."""
    url, told, live = house.urls[0], list[str](), asyncio.Queue[str]()
    watching = asyncio.create_task(_watch(house, url, live))
    async with asyncio.timeout(60):
        while (reply := await house.call("GET", "/v1/overview", url)).status_code != 200:
            assert reply.status_code == 503, reply.text
            told.append(reply.json()["detail"])
            for path in ("/v1/events", "/v1/webhooks", "/v1/bulk-actions"):
                assert (await house.call("GET", path, url)).status_code == 200
            await asyncio.sleep(0.2)
        seen = [await live.get()]
        while seen[-1] != "overview":
            seen.append(await live.get())
    watching.cancel()
    assert told
    assert all(f"of your {SHARDS}" in one for one in told), told
    assert "unavailable" in seen, seen


async def _watch(house: House, url: str, live: asyncio.Queue[str]) -> None:
    headers = {"authorization": f"Bearer {house.api_key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as client,
        client.stream("GET", f"{url}/v1/live") as reply,
    ):
        async for line in reply.aiter_lines():
            if line.startswith("event: "):
                live.put_nowait(line.removeprefix("event: "))


async def _many_are_cancelled_at_once(big: Big) -> None:
    url = big.house.urls[0]
    for _ in range(2 * SHARDS):
        await big.told("POST", "/v1/jobs", url, json=LATER)
    cancel = {"act": "cancel", "filter": {"state": "scheduled"}}
    action = await big.told("POST", "/v1/bulk-actions", url, json=cancel)
    async with asyncio.timeout(60):
        while action["state"] == "running":
            await asyncio.sleep(0.1)
            action = await big.told("GET", f"/v1/bulk-actions/{action['id']}", url)
    assert (action["state"], action["done"]) == ("done", 2 * SHARDS)


async def _is_seen_as_one_everywhere(big: Big, jobs: list[str]) -> None:
    some = [*{shard_of(one): one for one in jobs}.values()]
    for url in big.house.urls:
        assert sorted(await big.listed("&state=succeeded", url)) == sorted(jobs)
        assert (await big.told("GET", "/v1/usage", url))["total"]["jobs"] == len(jobs)
        assert (await big.told("GET", f"/v1/jobs/{some[0]}", url))["result"]["job"] == some[0]
        limits = await big.told("GET", "/v1/limits", url)
        assert (limits["weight"], limits["depth"]) == (1000, 0)
        assert (await big.told("GET", "/v1/overview", url))["tenant"] == "big"
        waited = await big.told("POST", "/v1/jobs/wait", url, json={"ids": some, "all": True})
        assert {one["id"] for one in waited["jobs"]} == {*some}
        for job in some:
            assert (await big.told("GET", f"/v1/jobs/{job}/explain", url))["state"] == "succeeded"


async def _rate_holds(house: House) -> tuple[list[str], str]:
    """Over all shards, at both servers; answers what was let in."""
    began, asked, let_in = time.monotonic(), 0, list[str]()

    async def post(url: str) -> None:
        nonlocal asked
        while time.monotonic() - began < 2.5:
            reply = await house.call("POST", "/v1/jobs", url, json=NAP)
            assert reply.status_code in (202, 429), reply.text
            asked += 1
            if reply.status_code == 202:
                let_in.append(reply.json()["id"])

    await asyncio.gather(*map(post, house.urls * 2))
    due = RATE * (1 + time.monotonic() - began)
    least = 0.9 * min(due, asked) - SHARDS  # a part of a job is left over in each
    assert least < len(let_in) < 1.1 * due, (asked, len(let_in), due)
    return let_in, f"{len(let_in)} of {due:.0f}, {asked} asked"
