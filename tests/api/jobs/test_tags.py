"""Tags and metadata: shown with a job, found by it, and nobody else's."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from tests.api.house import problem
from tests.api.jobs.test_bulk_actions import over
from tests.api.worker import HandWorker


async def posted(
    tenant: httpx2.AsyncClient, headers: dict[str, str] | None = None, **job: Any
) -> str:
    reply = await tenant.post("/v1/jobs", json={"type": "tagged.job", **job}, headers=headers)
    assert reply.status_code == 202, reply.text
    return str(reply.json()["id"])


async def found(tenant: httpx2.AsyncClient, **query: str) -> list[str]:
    reply = await tenant.get("/v1/jobs", params=query)
    assert reply.status_code == 200, reply.text
    return [job["id"] for job in reply.json()["jobs"]]


async def test_a_job_shows_them_and_is_found_by_them(
    tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient
) -> None:
    both = await posted(tenant, tags=["a", "b", "a"], metadata={"request": "r-1 ü"})
    later = await posted(tenant, tags=["b"], delay_seconds=600)
    plain = await posted(tenant)
    view = (await tenant.get(f"/v1/jobs/{both}")).json()
    assert (view["tags"], view["metadata"]) == (["a", "b"], {"request": "r-1 ü"})
    view = (await tenant.get(f"/v1/jobs/{plain}")).json()
    assert (view["tags"], view["metadata"]) == ([], {})
    assert await found(tenant, tag="a") == [both]
    assert await found(tenant, tag="b") == [later, both]
    assert await found(tenant, tag="b", state="scheduled") == [later]
    assert await found(tenant, tag="c") == []
    assert await found(stranger, tag="a") == []
    listed = (await tenant.get("/v1/jobs", params={"tag": "a"})).json()["jobs"][0]
    assert listed["tags"] == ["a", "b"]


async def test_with_a_key_and_in_a_batch(tenant: httpx2.AsyncClient) -> None:
    key = {"idempotency-key": "k1"}
    first = await posted(tenant, key, tags=["once"])
    assert await posted(tenant, key, tags=["once"]) == first
    assert await found(tenant, tag="once") == [first]
    plain = {"type": "tagged.job"}
    jobs = [{**plain, "tags": [f"n{n}"]} if n % 2 else plain for n in range(40)]
    key = {"idempotency-key": "k2"}
    reply = (await tenant.post("/v1/jobs/batch", json={"jobs": jobs}, headers=key)).json()
    assert reply["accepted"] == 40
    assert await found(tenant, tag="n7") == [reply["items"][7]["id"]]


async def test_many_are_cancelled_by_tag(tenant: httpx2.AsyncClient) -> None:
    gone, stays = await posted(tenant, tags=["old"]), await posted(tenant, tags=["new"])
    wanted = {"act": "cancel", "filter": {"tag": "old"}}
    reply = await tenant.post("/v1/bulk-actions", json=wanted)
    assert (await over(tenant, reply.headers["location"]))["done"] == 1
    states = [(await tenant.get(f"/v1/jobs/{job}")).json()["state"] for job in (gone, stays)]
    assert states == ["cancelled", "queued"]


async def test_they_outlive_the_run(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    await worker.hello()
    reply = await tenant.post("/v1/jobs", json={"type": worker.type, "tags": ["kept"]})
    await worker.run()
    view = (await tenant.get(f"/v1/jobs/{reply.json()['id']}")).json()
    assert (view["state"], view["tags"]) == ("succeeded", ["kept"])


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"tags": ["a b"]}, "/tags/0"),
        ({"tags": [""]}, "/tags/0"),
        ({"tags": ["x" * 65]}, "/tags/0"),
        ({"tags": [f"t{n}" for n in range(11)]}, "/tags"),
        ({"metadata": {f"k{n}": "" for n in range(17)}}, "/metadata"),
        ({"metadata": {"k": "x" * 257}}, "/metadata"),
        ({"metadata": {"k": 5}}, "/metadata"),
    ],
)
async def test_bounds(
    tenant: httpx2.AsyncClient, nothing_is_written: None, given: dict[str, Any], pointer: str
) -> None:
    reply = await tenant.post("/v1/jobs", json={"type": "tagged.job", **given})
    assert problem(reply, 422, "INVALID_REQUEST")["errors"][0]["pointer"].startswith(pointer)


async def test_a_tag_that_is_none(tenant: httpx2.AsyncClient) -> None:
    problem(await tenant.get("/v1/jobs", params={"tag": ""}), 422, "INVALID_REQUEST")
