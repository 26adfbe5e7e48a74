"""What was used, over HTTP: to the microsecond, by period, and run by run."""

from __future__ import annotations

import csv
import io
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.jobs.test_jobs import submit
from tests.api.worker import HandWorker

from fairway.api.billing.usage import _csv
from fairway.wire.billing import UsageLine

SUMS = ("jobs", "attempts", "billed_us", "unbilled_us")
BILLED_ENDS: list[dict[str, Any]] = [
    {"kind": "succeeded"},
    {"kind": "failed", "failure": "app_error", "delay_ms": 1},
    {"kind": "failed", "failure": "timeout", "delay_ms": 1},
    {"kind": "snoozed", "delay_ms": 1},
    {"kind": "failed", "failure": "worker_crash"},
]
CUT_SHORT: list[dict[str, Any]] = [
    {"kind": "returned"},
    {"kind": "failed", "failure": "worker_crash", "ran_us": 0},
]


async def usage(caller: httpx2.AsyncClient, **query: str) -> dict[str, Any]:
    reply = await caller.get("/v1/usage", params=query)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


def hour(offset: int = 0) -> str:
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    return (now + timedelta(hours=offset)).isoformat().replace("+00:00", "Z")


async def attempts(caller: httpx2.AsyncClient, **query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        more = {"cursor": cursor} if cursor else {}
        page = (await caller.get("/v1/usage/attempts", params={**query, **more})).json()
        found, cursor = found + page["attempts"], page["next_cursor"]
    return found


@pytest.fixture
async def ran(tenant: httpx2.AsyncClient, worker: HandWorker) -> list[tuple[dict[str, Any], bool]]:
    """Jobs whose runs ended in all ways at random: each report that was recorded, and whether it
    is billed."""
    dice = random.Random()
    await worker.hello(pool="medium", slots=1)
    reports: list[tuple[dict[str, Any], bool]] = []
    for _ in range(4):
        await submit(tenant, worker.type, pool="medium")
        is_over = False
        while not is_over and len(reports) < 30:
            billed = dice.random() < 0.6
            end = dice.choice(BILLED_ENDS if billed else CUT_SHORT)
            is_over = end["kind"] == "succeeded"
            lease = await worker.lease()
            report = worker.report(lease) | {"ran_us": dice.randint(1, 900_000)} | end
            heard = await worker.tell(report)
            if not is_over:  # said once more, as after a lost reply
                await worker.say(reports=[report])
            assert report["n"] in heard["recorded"]
            reports.append((report, billed))
            job = (await tenant.get(f"/v1/jobs/{lease['job']}")).json()
            is_over = is_over or job["finished_at"] is not None
    return reports


async def test_usage_is_what_workers_recorded(
    tenant: httpx2.AsyncClient, ran: list[tuple[dict[str, Any], bool]], worker: HandWorker
) -> None:
    billed = [report["ran_us"] for report, is_billed in ran if is_billed]
    cut_short = [report["ran_us"] for report, is_billed in ran if not is_billed]
    found = await usage(tenant, group="pool,type", by="hour", **{"from": hour(-2), "to": hour(2)})
    total = found["total"]
    assert (total["attempts"], total["billed_us"]) == (len(billed), sum(billed))
    assert total["unbilled_us"] == sum(cut_short)
    assert {(line["pool"], line["type"]) for line in found["lines"]} == {("medium", worker.type)}
    for query in ({"by": "hour"}, {"by": "day"}, {"by": "month", "group": "type"}):
        again = await usage(tenant, **query, **{"from": hour(-2), "to": hour(2)})
        assert again["total"] == total
        assert {name: sum(line[name] for line in again["lines"]) for name in SUMS} == total
    runs = await attempts(tenant, type=worker.type, **{"from": hour(-2), "to": hour(2)})
    assert sorted((run["ran_us"], run["billed"]) for run in runs) == sorted(
        (report["ran_us"], is_billed) for report, is_billed in ran
    )
    assert await attempts(tenant, pool="short", **{"from": hour(-2), "to": hour(2)}) == []


async def test_the_same_as_csv(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    await worker.hello()
    await submit(tenant, worker.type)
    await worker.run()
    reply = await tenant.get("/v1/usage", params={"format": "csv", "group": "pool,type"})
    assert reply.headers["content-type"].startswith("text/csv")
    (line,) = csv.DictReader(io.StringIO(reply.text))
    assert line["type"] == worker.type
    assert [line[name] for name in ("pool", *SUMS)] == ["short", "1", "1", "1500", "0"]


@pytest.mark.parametrize("name", ["=1+cmd", "+1", "-1", "@SUM(A1)"])
def test_no_name_of_a_type_is_a_formula_in_a_table(name: str) -> None:
    now = datetime.now(UTC)
    sums = dict.fromkeys(SUMS, -1)
    line = UsageLine(period=now, pool="short", type=name, **sums)
    (row,) = csv.DictReader(io.StringIO(_csv([line])))
    assert (row["type"], row["unbilled_us"]) == (f"'{name}", "-1")


async def test_an_operator_names_the_tenant_and_a_tenant_is_itself(
    house: House, operator: httpx2.AsyncClient, worker: HandWorker
) -> None:
    name, key = house.new_tenant()
    other, _ = house.new_tenant()
    await worker.hello()
    async with house.caller(key) as tenant:
        await submit(tenant, worker.type)
        await worker.run()
        mine = await usage(tenant, tenant=name)
        problem(await tenant.get("/v1/usage", params={"tenant": other}), 404, "NOT_FOUND", "tenant")
    assert (mine["total"]["billed_us"], mine["tenant"]) == (1500, name)
    assert await usage(operator, tenant=name) == mine
    assert (await usage(operator, tenant=other))["total"]["jobs"] == 0
    problem(await operator.get("/v1/usage"), 422, "INVALID_REQUEST", "tenant")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"from": "2026-01-01T00:30:00Z"}, "from"),
        ({"from": "2026-01-01T00:00:00"}, "from"),
        ({"to": "yesterday"}, "to"),
        ({"from": "2026-02-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"}, "from"),
        ({"from": "2026-01-01T00:00:00Z", "to": "2026-03-01T00:00:00Z", "by": "hour"}, "from"),
        ({"from": "2020-01-01T00:00:00Z", "by": "month"}, "from"),
        ({"by": "week"}, "by"),
        ({"group": "colour"}, "group"),
        ({"format": "xml"}, "format"),
        ({"since": "1"}, "since"),
    ],
)
async def test_what_cannot_be_asked(
    tenant: httpx2.AsyncClient, query: dict[str, str], field: str
) -> None:
    problem(await tenant.get("/v1/usage", params=query), 422, "INVALID_REQUEST", field)
