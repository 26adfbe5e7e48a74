"""Lists: filters that narrow, pages that stay where they are, refusals that name the filter."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import httpx2
from tests.api.worker import HandWorker


async def fill(tenant: httpx2.AsyncClient, *jobs: Mapping[str, object]) -> list[str]:
    items = (await tenant.post("/v1/jobs/batch", json={"jobs": jobs})).json()["items"]
    return [item["id"] for item in items]


async def ids(tenant: httpx2.AsyncClient, query: str = "") -> list[str]:
    reply = await tenant.get(f"/v1/jobs{query}")
    assert reply.status_code == 200, reply.text
    return [job["id"] for job in reply.json()["jobs"]]


async def test_lists_are_newest_first_and_without_payloads(tenant: httpx2.AsyncClient) -> None:
    made = await fill(tenant, *({"type": "a", "payload": {"n": n}} for n in range(3)))
    reply = await tenant.get("/v1/jobs")
    assert [job["id"] for job in reply.json()["jobs"]] == made[::-1]
    assert all("payload" not in job for job in reply.json()["jobs"])
    assert reply.json()["next_cursor"] is None
    assert "link" not in reply.headers


async def test_a_list_holds_the_callers_jobs_only(
    tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient
) -> None:
    await fill(tenant, {"type": "a"})
    assert await ids(stranger) == []
    assert await ids(stranger, "?type=a") == []


async def test_filters_narrow(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    a, b, c = await fill(
        tenant, {"type": "a"}, {"type": "b", "pool": "long"}, {"type": worker.type}
    )
    await worker.hello()
    await worker.run()
    assert await ids(tenant, "?type=a") == [a]
    assert await ids(tenant, "?pool=long") == [b]
    assert await ids(tenant, "?state=succeeded") == [c]
    assert await ids(tenant, "?state=queued,succeeded&limit=2") == [c, b]
    assert await ids(tenant, "?state=queued&pool=short") == [a]
    assert await ids(tenant, "?type=nobody.ever.submitted") == []


async def test_times_bound_a_list(tenant: httpx2.AsyncClient) -> None:
    made = await fill(tenant, {"type": "a"})
    now = datetime.now(UTC)
    before, after = (quote((now + timedelta(seconds=s)).isoformat()) for s in (-60, 60))
    assert await ids(tenant, f"?since={before}&until={after}") == made
    assert await ids(tenant, f"?since={after}") == []
    assert await ids(tenant, f"?until={before}") == []
    assert await ids(tenant, "?since=1970-01-01T00:00:00Z&until=9999-12-31T23:59:59Z") == made
    assert await ids(tenant, "?since=0001-01-01T00:00:00%2B14:00") == made
    assert await ids(tenant, "?since=2020-01-01T00:00:00+02:00") == made


async def test_pages_stay_where_they_are_while_jobs_come_in(tenant: httpx2.AsyncClient) -> None:
    made = await fill(tenant, *({"type": "a"} for _ in range(25)))
    seen: list[str] = []
    path: str | None = "/v1/jobs?limit=4&type=a"
    while path:
        reply, *_ = await asyncio.gather(
            tenant.get(path), *(tenant.post("/v1/jobs", json={"type": "a"}) for _ in range(3))
        )
        page = reply.json()
        seen += [job["id"] for job in page["jobs"]]
        path = reply.links["next"]["url"] if "next" in reply.links else None
        if path is None:
            assert page["next_cursor"] is None
        else:
            assert page["next_cursor"] in path
            assert "type=a" in path
    assert seen[-len(made) :] == made[::-1]
    assert len(seen) == len(set(seen))
    assert seen == sorted(seen, reverse=True)


async def test_many_filtered_lists_at_a_time_are_all_answered(tenant: httpx2.AsyncClient) -> None:
    await tenant.post("/v1/jobs", json={"type": "listed.at.once"})
    asked = (tenant.get("/v1/jobs?state=queued&type=listed.at.once") for _ in range(20))
    replies = await asyncio.gather(*asked)
    assert [reply.status_code for reply in replies] == [200] * 20


async def test_a_heavy_page_ends_early_and_nothing_is_left_out(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    count = 90
    await worker.hello(slots=count)
    made = await fill(tenant, *({"type": worker.type} for _ in range(count)))
    for _ in range(count):
        lease = await worker.lease()
        await worker.say(reports=[worker.report(lease, result="r" * 60_000)])
    for job in made:
        await tenant.get(f"/v1/jobs/{job}", headers={"prefer": "wait=20"})
    seen: list[str] = []
    pages, cursor = 0, ""
    while cursor is not None:
        query = {"limit": "200"} | ({"cursor": cursor} if cursor else {})
        page = (await tenant.get("/v1/jobs", params=query)).json()
        seen += [job["id"] for job in page["jobs"]]
        pages, cursor = pages + 1, page["next_cursor"]
    assert seen == made[::-1]
    assert pages == 2
