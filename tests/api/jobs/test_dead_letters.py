"""Dead letters over HTTP: one filter grammar to look, count, replay and discard; tenants apart."""

from __future__ import annotations

import httpx2
import pytest
from tests.api.house import problem
from tests.api.worker import HandWorker

ERROR = {"type": "ValueError", "message": "no user 7", "stack": ""}


async def died(
    tenant: httpx2.AsyncClient, worker: HandWorker, count: int = 1, **error: str
) -> list[str]:
    """Jobs of the worker's type that ended for good."""
    await worker.hello(slots=count)
    jobs = [{"type": worker.type, "payload": {"n": n}} for n in range(count)]
    await tenant.post("/v1/jobs/batch", json={"jobs": jobs})
    done = [
        await worker.run(kind="failed", failure="permanent", error=ERROR | error)
        for _ in range(count)
    ]
    return sorted(lease["job"] for lease in done)


async def ids(tenant: httpx2.AsyncClient, query: str = "") -> list[str]:
    reply = await tenant.get(f"/v1/dead-letters{query}")
    assert reply.status_code == 200, reply.text
    return sorted(job["id"] for job in reply.json()["jobs"])


async def test_a_dead_job_is_on_the_list_with_all_that_is_known_of_it(
    tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient, worker: HandWorker
) -> None:
    (job,) = await died(tenant, worker)
    assert await ids(tenant) == [job]
    assert await ids(stranger) == []
    problem(await stranger.get(f"/v1/dead-letters/{job}"), 404, "NOT_FOUND")
    shown = (await tenant.get(f"/v1/dead-letters/{job}")).json()
    assert (shown["state"], shown["payload"]) == ("dead", {"n": 0})
    assert shown["error"]["reason"] == "permanent"
    (run,) = shown["history"]
    assert (run["outcome"], run["worker"], run["error"]["type"]) == (
        "failed", "hand-1", "ValueError",
    )  # fmt: skip
    listed = (await tenant.get("/v1/dead-letters")).json()["jobs"][0]
    assert listed["fingerprint"] == shown["fingerprint"]
    assert "payload" not in listed
    assert "history" not in listed
    assert (await tenant.get(f"/v1/jobs/{job}")).json() == shown


async def test_filters_narrow_and_pages_go_on(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    jobs = await died(tenant, worker, 3)
    others = await died(tenant, worker, 2, message="quota")
    groups = (await tenant.get("/v1/dead-letters/groups")).json()
    assert [group["count"] for group in groups["groups"]] == [3, 2]
    assert groups["types"] == [{"type": worker.type, "count": 5, "count_is_exact": True}]
    cause = groups["groups"][0]["fingerprint"]
    assert await ids(tenant, f"?fingerprint={cause}") == jobs
    assert await ids(tenant, f"?type={worker.type}&pool=short") == sorted(jobs + others)
    assert await ids(tenant, "?type=never.heard.of") == []
    assert await ids(tenant, "?pool=long") == []
    assert await ids(tenant, "?until=2020-01-01T00:00:00Z") == []
    first = (await tenant.get("/v1/dead-letters?limit=3")).json()
    rest = await tenant.get(f"/v1/dead-letters?limit=3&cursor={first['next_cursor']}")
    assert len(rest.json()["jobs"]) == 2
    assert rest.json()["next_cursor"] is None


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("fingerprint=xyz", "fingerprint"),
        ("state=dead", "state"),
        ("limit=0", "limit"),
        ("since=yesterday", "since"),
        ("type=a&type=b", "type"),
    ],
)
async def test_bad_filters_are_named(tenant: httpx2.AsyncClient, query: str, field: str) -> None:
    problem(await tenant.get(f"/v1/dead-letters?{query}"), 422, "INVALID_REQUEST", field)
