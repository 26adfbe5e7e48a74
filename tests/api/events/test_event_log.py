"""A tenant's log of events over HTTP: followed, filtered, looked at from its end; its own alone."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from tests.api.house import first_events, problem
from tests.api.worker import HandWorker

MISSING = "01980a5e-7c1b-7000-8000-04a2b1c3d4e5"


async def page(client: httpx2.AsyncClient, query: str = "") -> dict[str, Any]:
    reply = await client.get(f"/v1/events?{query}")
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


def positions(found: dict[str, Any]) -> list[int]:
    return [event["position"] for event in found["events"]]


async def test_a_log_is_followed_and_looked_at(
    tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient, worker: HandWorker
) -> None:
    settings = "/v1/events/settings"
    assert (await tenant.get(settings)).json() == {"job_events": False}
    assert (await tenant.put(settings, json={"job_events": True})).json() == {"job_events": True}
    assert (await tenant.get(settings)).json() == {"job_events": True}
    assert (await stranger.get(settings)).json() == {"job_events": False}
    await worker.hello()
    jobs = [(await tenant.post("/v1/jobs", json={"type": worker.type})).json()["id"]
            for _ in range(3)]  # fmt: skip
    await first_events(tenant, 3)
    await tenant.delete(f"/v1/jobs/{jobs[2]}")
    for _ in range(2):
        await worker.run()
    await until_there(tenant, "kind=job.succeeded", 2)

    found = await page(tenant)
    assert positions(found) == [*range(1, len(found["events"]) + 1)]
    assert found["cursor"] == found["events"][-1]["position"]
    assert found["trimmed_to"] == 0
    first = found["events"][0]
    assert (first["kind"], first["job"], first["subject"]) == ("job.accepted", jobs[0], worker.type)
    assert first["data"] == {"state": "queued", "attempt": 0, "pool": "short"}
    done = (await page(tenant, "kind=job.succeeded"))["events"]
    assert [(one["job"], one["data"]["ran_ms"]) for one in done] == [(jobs[0], 1.5), (jobs[1], 1.5)]
    assert await page(tenant, "after=") == found, "a place that nobody has yet is the beginning"
    again = await page(tenant, f"after={found['cursor']}")
    assert (again["events"], again["cursor"]) == ([], found["cursor"])
    mine = (await page(tenant, f"job={jobs[2]}"))["events"]
    assert [one["kind"] for one in mine] == ["job.accepted", "job.cancelled"]

    two = await page(tenant, "limit=2&kind=job.accepted")
    assert (positions(two), two["cursor"]) == ([1, 2], 2)
    third = await page(tenant, f"limit=2&kind=job.accepted&after={two['cursor']}")
    assert (positions(third), third["cursor"]) == ([3], found["cursor"])
    none = await page(tenant, "type=other")
    assert (none["events"], none["cursor"]) == ([], found["cursor"])

    newest = await page(tenant, "order=newest&limit=2")
    last = found["cursor"]
    assert (positions(newest), newest["cursor"]) == ([last, last - 1], last - 1)
    below = await page(tenant, f"order=newest&after={last - 1}&kind=job.accepted")
    assert (positions(below), below["cursor"]) == ([3, 2, 1], 1)
    assert positions(await page(tenant, "order=newest&after=1")) == []
    empty = await page(stranger, "order=newest")
    assert (empty["events"], empty["trimmed_to"]) == ([], 0)
    assert (await page(stranger))["events"] == []


async def until_there(tenant: httpx2.AsyncClient, query: str, count: int) -> None:
    for _ in range(1000):
        if len((await page(tenant, query))["events"]) == count:
            return
    raise AssertionError(f"there are no {count} events of {query}")


async def test_one_job_may_be_heard_of(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    jobs = [{"type": worker.type}, {"type": worker.type, "events": True, "tags": ["a"]}]
    made = (await tenant.post("/v1/jobs/batch", json={"jobs": jobs})).json()["items"]
    (event,) = await first_events(tenant, 1)
    assert (event["kind"], event["job"]) == ("job.accepted", made[1]["id"])
    assert (await tenant.get(f"/v1/jobs/{made[1]['id']}")).json()["tags"] == ["a"]


@pytest.mark.parametrize(
    ("query", "field"),
    [("kind=job.done", "kind"), ("kinds=job.dead", "kinds"), ("after=-1", "after"),
     ("after=x", "after"), ("after=9999999999999999999", "after"),
     ("limit=0", "limit"), ("limit=1001", "limit"), ("job=7", "job"),
     ("type=", "type"), ("order=up", "order"), ("after=1&after=2", "after")],
)  # fmt: skip
async def test_what_no_question_is_is_refused(
    tenant: httpx2.AsyncClient, query: str, field: str
) -> None:
    problem(await tenant.get(f"/v1/events?{query}"), 422, "INVALID_REQUEST", field)


async def test_settings_are_a_choice_of_the_tenants(
    tenant: httpx2.AsyncClient, nobody: httpx2.AsyncClient
) -> None:
    wrong = await tenant.put("/v1/events/settings", json={"job_events": "yes"})
    problem(wrong, 422, "INVALID_REQUEST", "/job_events")
    problem(await nobody.get("/v1/events"), 401, "UNAUTHENTICATED")
    assert (await page(tenant, f"job={MISSING}"))["events"] == []


async def test_a_position_beyond_the_end_is_told(tenant: httpx2.AsyncClient) -> None:
    """Whoever waited there would miss all that comes."""
    for query in ("after=7", "after=7&wait=5"):
        told = problem(await tenant.get(f"/v1/events?{query}"), 400, "INVALID_CURSOR", "after")
        assert "the newest is 0" in told["detail"]


async def test_a_filter_has_a_bound(tenant: httpx2.AsyncClient) -> None:
    same, many = ",".join(["a"] * 900), ",".join(f"t{n}" for n in range(51))
    assert (await tenant.get(f"/v1/events?type={same}")).status_code == 200
    problem(await tenant.get(f"/v1/events?type={many}"), 422, "INVALID_REQUEST", "type")
