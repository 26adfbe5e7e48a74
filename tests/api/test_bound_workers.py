"""A shared worker's key that is bound to tenants: in all that it says it is as good as one of
theirs, and with everybody else's jobs it has no business.
"""

from __future__ import annotations

import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.jobs.test_jobs import submit
from tests.api.test_worker_matrix import ALL, answers, said_of_each, save_some
from tests.api.worker import HandWorker
from tests.api.worker_world import JOBS, Keys, make_keys, world_of

#: Of a shared worker's types everybody's facts are said, bound or not.
LIKE_ANOTHERS = [
    "a report", "a report in a hello", "a holding in a hello", "all that runs",
    "POST /v1/workers/{name}/checkpoints", "GET /v1/workers/{name}/checkpoints/{id}",
    "GET /v1/workers/{name}/payloads/{id}", "POST /v1/workers/{name}/logs",
]  # fmt: skip


@pytest.fixture(scope="module")
def keys(house: House) -> Keys:
    """Bob's workers have a shared key that is bound to him."""
    made = make_keys(house)
    return made._replace(other=house.new_key({"scope": "worker", "tenants": [made.bob]}))


@pytest.mark.parametrize("name", LIKE_ANOTHERS)
async def test_it_speaks_for_its_tenants_and_nobody_else(
    house: House, keys: Keys, name: str
) -> None:
    row = ALL[name]
    async with world_of(house, keys, "other") as world:
        if "GET" in name and "checkpoints" in name:
            await save_some(world)
        heard = await said_of_each(world, row)
    assert heard == dict(zip(JOBS, answers(row.heard["other"]), strict=True))


async def test_it_is_given_jobs_of_its_tenants_only(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    (first, firsts), (second, seconds) = house.new_tenant(), house.new_tenant()
    key = house.new_key({"scope": "worker", "tenants": [first, second]})
    async with house.caller(key) as line, house.caller(firsts) as a, house.caller(seconds) as b:
        bound = HandWorker(line)
        bound.type = worker.type
        await submit(tenant, worker.type)
        await bound.hello(slots=5)
        mine = {await submit(a, worker.type), await submit(b, worker.type)}
        leases = [await bound.lease(), await bound.lease()]
        assert {f"/v1/jobs/{one['job']}" for one in leases} == mine
        for one in leases:
            await bound.tell(bound.report(one))
        assert "leases" not in await bound.say(wait_ms=100)
        await worker.hello()
        assert (await worker.run())["job"] not in str(mine), "another worker takes the rest"
        await bound.say(goodbye=True)


async def test_what_such_a_key_is_bound_to_is_shown_and_goes_on_with_it(
    house: House, operator: httpx2.AsyncClient
) -> None:
    name, _ = house.new_tenant()
    wanted = {"scope": "worker", "tenants": [name]}
    made = (await operator.post("/v1/keys", json=wanted)).json()
    after = (await operator.post(f"/v1/keys/{made['id']}/rotate", json={})).json()
    listed = (await operator.get("/v1/keys", params={"scope": "worker", "limit": 200})).json()
    shown = {one["id"]: one["tenants"] for one in listed["keys"]}
    assert [shown.get(one["id"], [name]) for one in (made, after)] == [[name], [name]]
    for wrong in ({"tenants": [name]}, {"scope": "worker", "tenant": name, "tenants": [name]}):
        refused = await operator.post("/v1/keys", json={"tenant": name} | wrong)
        problem(refused, 422, "INVALID_REQUEST", "/tenants")
    unknown = {"scope": "worker", "tenants": ["never-was"]}
    problem(await operator.post("/v1/keys", json=unknown), 404, "NOT_FOUND", "/tenants")
