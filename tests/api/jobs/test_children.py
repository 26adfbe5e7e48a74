"""Jobs that runs start, over HTTP: listed by their parent, refused by name, cancelled together."""

from __future__ import annotations

import time
from typing import Any

import httpx2
import pytest
from tests.api.house import problem
from tests.api.jobs.test_jobs import UNKNOWN, submit
from tests.api.worker import HandWorker


def starts(*jobs: dict[str, Any]) -> dict[str, Any]:
    return {"at_ms": time.time_ns() // 1_000_000 + 50, "jobs": list(jobs)}


async def parent_of(
    tenant: httpx2.AsyncClient, worker: HandWorker, *jobs: dict[str, Any], **more: Any
) -> dict[str, Any]:
    """The record of a job whose run wanted these."""
    await worker.hello()
    location = await submit(tenant, worker.type)
    await worker.run(follow_ups=starts(*jobs), **more)
    found: dict[str, Any] = (await tenant.get(location)).json()
    return found


async def page_of(tenant: httpx2.AsyncClient, job: str, **query: Any) -> dict[str, Any]:
    reply = await tenant.get(f"/v1/jobs/{job}/children", params=query)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


async def test_children_are_listed_page_by_page(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    wanted = [{"type": "never.run", "payload": {"n": n}, "priority": n % 10} for n in range(12)]
    parent = await parent_of(tenant, worker, *wanted, {"type": "later", "delay_seconds": 900})
    assert (parent["state"], parent["children"], parent["parent_id"]) == ("succeeded", 13, None)
    first = await page_of(tenant, parent["id"], limit=10)
    rest = await page_of(tenant, parent["id"], limit=10, cursor=first["next_cursor"])
    found = [*first["jobs"], *rest["jobs"]]
    assert rest["next_cursor"] is None
    assert {one["parent_id"] for one in found} == {parent["id"]}
    assert [one["priority"] for one in found[1:]] == [n % 10 for n in reversed(range(12))]
    assert [one["state"] for one in found[:2]] == ["scheduled", "queued"]
    one = (await tenant.get(f"/v1/jobs/{found[-1]['id']}")).json()
    assert (one["payload"], one["parent_id"]) == ({"n": 0}, parent["id"])


async def test_children_have_tags_and_limits(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    limits = [{"key": "a", "at_most": 1}]
    marks = {"tags": ["nightly", "customer:17"], "metadata": {"k": "v"}}
    parent = await parent_of(tenant, worker, {"type": "never.run", "limits": limits, **marks})
    (child,) = (await page_of(tenant, parent["id"]))["jobs"]
    assert {name: child[name] for name in marks} == marks
    found = (await tenant.get("/v1/jobs", params={"tag": "customer:17"})).json()["jobs"]
    assert [one["id"] for one in found] == [child["id"]]


async def test_who_started_none_has_none(tenant: httpx2.AsyncClient) -> None:
    location = await submit(tenant)
    assert (await tenant.get(location)).json()["children"] == 0
    assert await page_of(tenant, location.rpartition("/")[2]) == {"jobs": [], "next_cursor": None}
    problem(await tenant.get(f"/v1/jobs/{UNKNOWN}/children"), 404, "NOT_FOUND")
    asked = await tenant.get(f"{location}/children", params={"state": "queued"})
    problem(asked, 422, "INVALID_REQUEST")


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"type": "a", "pool": "huge"}, "/follow_ups/1/pool"),
        ({"type": "a", "payload": [1]}, "object"),
        ({"type": "a", "payload": {"x": "y" * 70_000}}, "65536"),
        ({"type": "a", "payload_upload": "u"}, "payload_upload"),
        ({"type": "a", "nonsense": 1}, "nonsense"),
        ({"type": "a", "unique": {"key": "k"}}, "cannot be unique"),
        ({"type": "a", "not_after": "2026-01-01T00:00:00"}, "not_after"),
    ],
)
async def test_what_no_submission_may_be_fails_the_run_by_name(
    tenant: httpx2.AsyncClient, worker: HandWorker, wanted: dict[str, Any], told: str
) -> None:
    parent = await parent_of(tenant, worker, {"type": "never.run"}, wanted)
    assert (parent["state"], parent["children"]) == ("dead", 0)
    assert parent["error"]["type"] == "FollowUpsRefused"
    assert told in parent["error"]["message"]


async def test_only_a_success_starts_anything(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    parent = await parent_of(tenant, worker, {"type": "never.run"}, kind="snoozed", delay_ms=60_000)
    assert (parent["state"], parent["children"]) == ("scheduled", 0)


# -- cancelled together --------------------------------------------------------------------------


async def grown(tenant: httpx2.AsyncClient, worker: HandWorker) -> tuple[str, list[str], list[str]]:
    """A job, its children, and what the first of them started."""
    more: list[dict[str, Any]] = [
        {"type": worker.type},
        {"type": "never.run", "delay_seconds": 900},
    ]
    parent = await parent_of(tenant, worker, *more)
    await worker.run(follow_ups=starts({"type": "never.run"}))
    children = [one["id"] for one in (await page_of(tenant, parent["id"]))["jobs"]]
    below = [one["id"] for one in (await page_of(tenant, children[1]))["jobs"]]
    assert (len(children), len(below)) == (2, 1)
    return parent["id"], children, below


async def states(tenant: httpx2.AsyncClient, *jobs: str) -> list[str]:
    return [(await tenant.get(f"/v1/jobs/{job}")).json()["state"] for job in jobs]


async def test_a_job_is_cancelled_with_all_that_came_of_it(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    job, children, below = await grown(tenant, worker)
    problem(await tenant.delete(f"/v1/jobs/{job}"), 409, "CONFLICT")
    assert await states(tenant, *children, *below) == ["scheduled", "succeeded", "queued"]
    done = await tenant.delete(f"/v1/jobs/{job}", params={"children": "true"})
    assert (done.status_code, done.json()["state"]) == (200, "succeeded")
    assert await states(tenant, *children, *below) == ["cancelled", "succeeded", "cancelled"]


async def test_a_job_that_waits_is_cancelled_as_ever(tenant: httpx2.AsyncClient) -> None:
    location = await submit(tenant)
    problem(await tenant.delete(location, params={"children": "yes"}), 422, "INVALID_REQUEST")
    done = await tenant.delete(location, params={"children": "true"})
    assert (done.status_code, done.json()["state"]) == (200, "cancelled")
    problem(await tenant.delete(f"/v1/jobs/{UNKNOWN}?children=true"), 404, "NOT_FOUND")
