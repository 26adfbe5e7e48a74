"""The one filter grammar: what it takes and what it refuses, by the filter's name."""

from __future__ import annotations

import httpx2
import pytest
from tests.api.house import problem
from tests.api.jobs.test_listing import fill, ids

from fairway.api.filters import states


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=-1", "limit"),
        ("limit=1e2", "limit"),
        ("limit=%D9%A3", "limit"),
        ("limit=" + "1" * 5000, "limit"),
        ("limit=", "limit"),
        ("limit=1&limit=2", "limit"),
        ("state=done", "state"),
        ("state=queued,,running", "state"),
        ("state=", "state"),
        ("since=yesterday", "since"),
        ("since=2026-01-31T12:00:00", "since"),
        ("since=2026-13-01T00:00:00Z", "since"),
        ("until=99999-01-01T00:00:00Z", "until"),
        ("tenant=other", "tenant"),
        ("order=id", "order"),
        ("state=queued'--", "state"),
    ],
)
async def test_a_bad_filter_is_named(tenant: httpx2.AsyncClient, query: str, field: str) -> None:
    problem(await tenant.get(f"/v1/jobs?{query}"), 422, "INVALID_REQUEST", field)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/jobs"),
        ("POST", "/v1/jobs/cancel"),
        ("GET", "/v1/dead-letters"),
        ("POST", "/v1/dead-letters/replay"),
        ("POST", "/v1/dead-letters/discard"),
    ],
)
async def test_an_unknown_type_hides_no_other_mistake(
    tenant: httpx2.AsyncClient, method: str, path: str
) -> None:
    body = None if method == "GET" else {"dry_run": True}
    mistakes = {"since": "soon", "until": "2026-01-31", "pool": "huge"}
    if "dead-letters" not in path:
        mistakes["state"] = "asleep"
    if method == "GET":
        mistakes |= {"limit": "null"}
    for name, value in mistakes.items():
        params = {"type": "nobody.ever.submitted", name: value}
        reply = await tenant.request(method, path, params=params, json=body)
        code = "UNKNOWN_POOL" if name == "pool" else "INVALID_REQUEST"
        problem(reply, 422, code, name)
    if path.count("/") == 2 or path.endswith("cancel"):
        params = {"type": "nobody.ever.submitted", "cursor": "x"}
        reply = await tenant.request(method, path, params=params, json=body)
        problem(reply, 400, "INVALID_CURSOR", "cursor")
    alone = {"type": "nobody.ever.submitted"}
    assert (await tenant.request(method, path, params=alone, json=body)).status_code == 200


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/jobs"), ("POST", "/v1/jobs/cancel")])
async def test_an_empty_type_is_not_every_type(
    tenant: httpx2.AsyncClient, method: str, path: str
) -> None:
    """As from a shell's variable that was not set: nobody wants all jobs cancelled by that."""
    (job,) = await fill(tenant, {"type": "a"})
    body: dict[str, bool] | None = None if method == "GET" else {}
    reply = await tenant.request(method, path, params={"type": ""}, json=body)
    problem(reply, 422, "INVALID_REQUEST", "type")
    assert (await tenant.get(f"/v1/jobs/{job}")).json()["state"] == "queued"


async def test_an_unknown_pool_is_named(tenant: httpx2.AsyncClient) -> None:
    problem(await tenant.get("/v1/jobs?pool=huge"), 422, "UNKNOWN_POOL", "pool")


@pytest.mark.parametrize(
    "cursor", ["x", "AAAA", "!" * 22, "A" * 23, "%C3%A9", "%00", "' OR 1=1 --", "A" * 22 + "%3D"]
)
async def test_a_bad_cursor_is_refused(tenant: httpx2.AsyncClient, cursor: str) -> None:
    reply = await tenant.get(f"/v1/jobs?cursor={cursor}")
    problem(reply, 400, "INVALID_CURSOR", "cursor")


async def test_a_forged_cursor_shows_nothing_of_others(
    tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient
) -> None:
    await fill(tenant, *({"type": "a"} for _ in range(3)))
    cursor = (await tenant.get("/v1/jobs?limit=1")).json()["next_cursor"]
    assert await ids(stranger, f"?cursor={cursor}") == []


def test_a_state_that_is_named_often_is_one() -> None:
    assert states("queued,running," * 1000 + "queued") == states("running,queued")
