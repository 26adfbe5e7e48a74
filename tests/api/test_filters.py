"""The one filter grammar: what it takes and what it refuses, by the filter's name."""

from __future__ import annotations

import httpx2
import pytest
from tests.api.house import problem
from tests.api.jobs.test_listing import fill, ids

from fairway.api.filters import states
from fairway.api.routes import ENDPOINTS
from fairway.cli.dead import Filters
from fairway.cli.events import WhichEvents
from fairway.cli.jobs import Which
from fairway.sdk.bulk import BulkWhich
from fairway.wire.bulk import BulkFilters
from fairway.wire.events import SocketRequest


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


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/dead-letters"])
async def test_an_unknown_type_hides_no_other_mistake(
    tenant: httpx2.AsyncClient, path: str
) -> None:
    mistakes = {"since": "soon", "until": "2026-01-31", "pool": "huge", "limit": "null"}
    if "dead-letters" not in path:
        mistakes["state"] = "asleep"
    for name, value in mistakes.items():
        reply = await tenant.get(path, params={"type": "nobody.ever.submitted", name: value})
        code = "UNKNOWN_POOL" if name == "pool" else "INVALID_REQUEST"
        problem(reply, 422, code, name)
    reply = await tenant.get(path, params={"type": "nobody.ever.submitted", "cursor": "x"})
    problem(reply, 400, "INVALID_CURSOR", "cursor")
    alone = {"type": "nobody.ever.submitted"}
    assert (await tenant.get(path, params=alone)).status_code == 200


@pytest.mark.parametrize("act", ["cancel", "replay", "discard"])
async def test_the_same_mistakes_of_acts_on_many(tenant: httpx2.AsyncClient, act: str) -> None:
    for name, value in {"since": "soon", "pool": "huge", "state": "asleep", "tag": ""}.items():
        which = {"type": "nobody.ever.submitted", name: value}
        reply = await tenant.post("/v1/bulk-actions", json={"act": act, "filter": which})
        code = "UNKNOWN_POOL" if name == "pool" else "INVALID_REQUEST"
        problem(reply, 422, code, f"/filter/{name}")
    alone = {"act": act, "filter": {"type": "nobody.ever.submitted"}, "dry_run": True}
    reply = await tenant.post("/v1/bulk-actions", json=alone)
    assert reply.json() == {"matched": 0, "is_exact": True}


async def test_an_empty_type_is_not_every_type(tenant: httpx2.AsyncClient) -> None:
    """As from a shell's variable that was not set: nobody wants all jobs cancelled by that."""
    (job,) = await fill(tenant, {"type": "a"})
    problem(await tenant.get("/v1/jobs", params={"type": ""}), 422, "INVALID_REQUEST", "type")
    wanted = {"act": "cancel", "filter": {"type": ""}}
    reply = await tenant.post("/v1/bulk-actions", json=wanted)
    problem(reply, 422, "INVALID_REQUEST", "/filter/type")
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


def test_a_filter_has_one_name_wherever_it_is_said() -> None:
    """In the singular: several are one text with commas. What a thing has may be many (`tags`)."""
    queries = [one for each in ENDPOINTS for one in each.parameters if one.place == "query"]
    said = {one.name for one in queries}
    for kind in (BulkFilters, SocketRequest, Which, Filters, WhichEvents, BulkWhich):
        said |= kind.__annotations__.keys()
    assert said >= {"state", "type", "pool", "tag", "kind", "since", "until"}
    assert said.isdisjoint({"states", "types", "pools", "tags", "kinds"})
