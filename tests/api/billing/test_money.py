"""Prices, statements and caps over HTTP: who may see and set what."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.jobs.test_jobs import submit
from tests.api.worker import HandWorker

from fairway import App
from fairway.services.platform import Platform

THIS_MONTH = f"{datetime.now(UTC):%Y-%m}"


async def test_a_statement_has_a_line_for_what_was_used(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await worker.hello()
    await submit(tenant, worker.type)
    await worker.run()
    found = (await tenant.get(f"/v1/statements/{THIS_MONTH}")).json()
    (line,) = [line for line in found["lines"] if line["kind"] == "usage"]
    assert (line["pool"], line["type"], line["billed_us"]) == ("short", worker.type, 1500)
    assert found["total_micros"] == sum(line["amount_micros"] for line in found["lines"])
    assert (found["month"], found["closed"], found["closed_at"]) == (THIS_MONTH, False, None)


async def test_months_that_are_none(tenant: httpx2.AsyncClient) -> None:
    problem(await tenant.get("/v1/statements/2026-13"), 422, "INVALID_REQUEST", "month")
    problem(await tenant.get("/v1/statements/2999-01"), 404, "NOT_FOUND")


async def test_prices_are_added_by_operators_and_seen_by_all(
    operator: httpx2.AsyncClient, tenant: httpx2.AsyncClient
) -> None:
    begins = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) + timedelta(days=4000)
    price = {
        "pool": "long",
        "valid_from": begins.isoformat().replace("+00:00", "Z"),
        "base_fee_micros": 5,
        "slot_second_micros": 25,
    }
    added = await operator.post("/v1/prices", json=price)
    shown = price | {"id": f"long-{begins:%Y%m%d%H}"}
    assert (added.status_code, added.json()) == (201, shown), added.text
    assert shown in (await tenant.get("/v1/prices")).json()["prices"]
    problem(await operator.post("/v1/prices", json=price), 409, "CONFLICT")
    past = price | {"valid_from": "2020-01-01T00:00:00Z"}
    problem(await operator.post("/v1/prices", json=past), 422, "INVALID_REQUEST", "/valid_from")
    problem(await tenant.post("/v1/prices", json=price), 403, "FORBIDDEN")


async def test_a_price_is_taken_back_until_it_begins(
    house: House, operator: httpx2.AsyncClient, tenant: httpx2.AsyncClient
) -> None:
    price = {"pool": "*", "valid_from": "2998-01-01T00:00:00Z", "slot_second_micros": 25}
    added = (await operator.post("/v1/prices", json=price)).json()
    path = f"/v1/prices/{added['id']}"
    assert path == "/v1/prices/*-2998010100"
    problem(await tenant.delete(path), 403, "FORBIDDEN")
    assert (await operator.delete(path)).status_code == 204
    assert added not in (await tenant.get("/v1/prices")).json()["prices"]
    problem(await operator.delete(path), 404, "NOT_FOUND")
    problem(await operator.delete("/v1/prices/long-2026999999"), 404, "NOT_FOUND")
    again = (await operator.post("/v1/prices", json=price | {"slot_second_micros": 26})).json()
    assert again["slot_second_micros"] == 26, "a mistake is mended"
    assert (await operator.delete(path)).status_code == 204

    async def begin(platform: Platform) -> None:
        async with platform.database.background() as connection:
            await connection.execute(
                "INSERT INTO prices VALUES ('long', '2001-01-01T00:00:00Z', 0, 0)"
            )

    house.inside(begin)
    told = problem(await operator.delete("/v1/prices/long-2001010100"), 409, "CONFLICT")
    assert "has begun" in told["detail"]


async def test_a_cap_is_set_seen_and_taken_away(house: House, operator: httpx2.AsyncClient) -> None:
    name, key = house.new_tenant()
    path = f"/v1/tenants/{name}/spend-cap"
    async with house.caller(key) as tenant:
        assert (await tenant.get("/v1/spend-cap")).json()["stage"] == "none"
        set_ = await operator.put(path, json={"cap_micros": 100, "grace_seconds": 60})
        assert set_.json()["cap_micros"] == 100
        seen = (await tenant.get("/v1/spend-cap")).json()
        assert (seen["cap_micros"], seen["grace_seconds"], seen["spent_micros"]) == (100, 60, 0)
        problem(await tenant.put(path, json={"cap_micros": 1}), 403, "FORBIDDEN")
    assert (await operator.get(path)).json() == seen
    holds = (await operator.get("/v1/spend-caps")).json()
    assert name not in holds["tenants"], "it has spent nothing"
    assert holds["count"] == len(holds["tenants"])
    assert (await operator.delete(path)).status_code == 204
    problem(await operator.delete(path), 404, "NOT_FOUND")
    problem(
        await operator.put(path, json={"cap_micros": -1}), 422, "INVALID_REQUEST", "/cap_micros"
    )


async def test_the_sdk_asks_for_all_of_it(house: House, worker: HandWorker) -> None:
    _, key = house.new_tenant()
    await worker.hello()
    async with house.caller(key) as tenant:
        await submit(tenant, worker.type)
        await worker.run()
    app = App("billing", url=house.url, api_key=key)
    billing = app.client.billing
    used = await billing.usage(by="hour", group="pool,type")
    assert [(line.type, line.billed_us) for line in used.lines] == [(worker.type, 1500)]
    runs = [run async for run in billing.attempts(used.since, used.before, type=worker.type)]
    assert [(run.ran_us, run.outcome, run.billed) for run in runs] == [(1500, "succeeded", True)]
    statement = await billing.statement(THIS_MONTH)
    assert [line.billed_us for line in statement.lines if line.kind == "usage"] == [1500]
    assert (await billing.spend_cap()).stage == "none"
    assert isinstance(await billing.prices(), list)
    await app.aclose()


@pytest.mark.parametrize("path", ["/v1/usage/attempts", f"/v1/statements/{THIS_MONTH}"])
async def test_a_stranger_sees_nothing_of_it(
    house: House, stranger: httpx2.AsyncClient, operator: httpx2.AsyncClient, path: str
) -> None:
    name, _ = house.new_tenant()
    problem(await stranger.get(path, params={"tenant": name}), 404, "NOT_FOUND", "tenant")
    assert (await operator.get(path, params={"tenant": name})).status_code == 200
