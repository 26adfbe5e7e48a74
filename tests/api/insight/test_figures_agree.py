"""The overview, the history, the metrics, the list and the rows of the store tell the same."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from typing import Any

import httpx2
from prometheus_client.parser import text_string_to_metric_families
from tests.api.house import House
from tests.api.insight.test_insight import overview, until_seen
from tests.api.worker import HandWorker

from fairway.core.lifecycle import State
from fairway.services.platform import Platform

WELL, TRIED_AGAIN, DEAD, LEFT = 7, 3, 2, 4
#: What `/metrics` calls them, and with which labels; accepted is of all pools.
METRICS: dict[str, tuple[str, dict[str, str] | str]] = {
    "accepted": ("fairway_jobs_accepted_total", {}),
    "started": ("fairway_leases_granted_total", "pool"),
    "succeeded": ("fairway_outcomes_recorded_total", {"pool": "", "outcome": "succeeded"}),
    "retried": ("fairway_runs_retried_total", "pool"),
    "dead": ("fairway_dead_letters_total", "pool"),
}
BY_STATE = "SELECT state, count(*) FROM jobs WHERE tenant = $1 GROUP BY state"
NUMBERS = {"queued": State.QUEUED, "succeeded": State.SUCCEEDED, "dead": State.DEAD}


async def metrics(operator: httpx2.AsyncClient, pool: str) -> dict[str, float]:
    text = (await operator.get("/metrics")).text
    samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
    found = {}
    for name, (metric, labels) in METRICS.items():
        wanted = {"pool": pool} if isinstance(labels, str) else dict(labels)
        wanted |= {"pool": pool} if "pool" in wanted else {}
        mine = [
            one.value
            for one in samples
            if one.name == metric and wanted.items() <= one.labels.items()
        ]
        found[name] = sum(mine)
    return found


async def submit(tenant: httpx2.AsyncClient, kind: str, pool: str, count: int) -> None:
    for _ in range(count):
        reply = await tenant.post("/v1/jobs", json={"type": kind, "pool": pool})
        assert reply.status_code == 202, reply.text


async def work(tenant: httpx2.AsyncClient, worker: HandWorker, pool: str) -> None:
    """What fails may come back before the worker has left: how many runs there are is not known."""
    await submit(tenant, worker.type, pool, WELL + TRIED_AGAIN + DEAD)
    await worker.hello(pool=pool)
    for _ in range(WELL):
        await worker.run()
    for _ in range(DEAD):
        await worker.run(kind="failed", failure="permanent")
    for number in range(TRIED_AGAIN):
        lease = await worker.lease()
        is_last = number == TRIED_AGAIN - 1
        await worker.tell(worker.report(lease, "failed", failure="app_error"), draining=is_last)
    await worker.leave()
    await submit(tenant, worker.type, pool, LEFT)


async def listed(tenant: httpx2.AsyncClient) -> list[dict[str, Any]]:
    """Every job with its runs, once none is between two states."""
    async with asyncio.timeout(60):
        while True:
            jobs = (await tenant.get("/v1/jobs?limit=100")).json()["jobs"]
            if {job["state"] for job in jobs} <= {"queued", "succeeded", "dead"}:
                return [(await tenant.get(f"/v1/jobs/{job['id']}")).json() for job in jobs]
            await asyncio.sleep(0.05)


def figures(jobs: list[dict[str, Any]]) -> dict[str, int]:
    """From the jobs alone."""
    states = Counter(job["state"] for job in jobs)
    runs = Counter(run["outcome"] for job in jobs for run in job["history"])
    failed = sum(count for outcome, count in runs.items() if outcome != "succeeded")
    return {
        "accepted": len(jobs),
        "started": states["succeeded"] + failed,
        "succeeded": states["succeeded"],
        "failed": failed,
        "retried": failed - states["dead"],
        "dead": states["dead"],
    }


async def history(operator: httpx2.AsyncClient, house: House, of: str, name: str) -> dict[str, int]:
    async def end_minute(platform: Platform) -> None:
        await platform.insight.minutes.close()

    await asyncio.to_thread(house.inside, end_minute)
    reply = await operator.get(f"/v1/history?of={of}&name={name}")
    assert reply.status_code == 200, reply.text
    columns = reply.json()
    names = ("accepted", "started", "succeeded", "failed", "retried", "dead")
    return {one: sum(value or 0 for value in columns[one]) for one in names}


async def test_all_that_count_agree(
    house: House, operator: httpx2.AsyncClient, worker: HandWorker
) -> None:
    pool = f"p-{secrets.token_hex(4)}"  # of its own: nobody else's jobs count there
    assert (await operator.put(f"/v1/pools/{pool}", json={})).status_code == 200
    name, key = house.new_tenant()
    async with house.caller(key) as tenant:
        before = await metrics(operator, pool)
        await work(tenant, worker, pool)
        jobs = await listed(tenant)
        after = await metrics(operator, pool)
    counted = figures(jobs)
    assert (counted["accepted"], counted["dead"]) == (WELL + TRIED_AGAIN + DEAD + LEFT, DEAD)
    assert counted["retried"] >= TRIED_AGAIN
    grown = {one: after[one] - before[one] for one in METRICS}
    assert grown == {one: counted[one] for one in METRICS}, "metrics"
    for of, what in (("pool", pool), ("type", worker.type), ("tenant", name)):
        assert await history(operator, house, of, what) == counted, of
    await until_seen(house)
    shown = next(one for one in (await overview(operator))["pools"] if one["name"] == pool)
    states = Counter(job["state"] for job in jobs)
    assert (shown["queued"], shown["running"]) == (states["queued"], 0)
    shares = (await operator.get(f"/v1/shares?tenant={name}")).json()["items"]
    assert [(one["pool"], one["queued"]) for one in shares] == [(pool, states["queued"])]

    async def rows(platform: Platform) -> dict[int, int]:
        async with platform.database.background() as connection:
            found = await connection.fetch(BY_STATE, platform.directory.id_of(name))
        return dict(map(tuple, found))

    in_store = {NUMBERS[state].value: count for state, count in states.items()}
    assert await asyncio.to_thread(house.inside, rows) == in_store
