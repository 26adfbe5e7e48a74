"""Recurring schedules over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.worker import HandWorker

from fairway.services.platform import Platform

DAILY: dict[str, Any] = {
    "cron": "0 9 * * MON-FRI",
    "timezone": "Europe/Lisbon",
    "type": "report",
    "payload": {"kind": "daily"},
}
PATH = "/v1/schedules/daily"


async def put(tenant: httpx2.AsyncClient, path: str = PATH, **changes: Any) -> dict[str, Any]:
    reply = await tenant.put(path, json=DAILY | changes)
    assert reply.status_code in (200, 201), reply.text
    found: dict[str, Any] = reply.json()
    return found


async def test_a_schedule_is_made_shown_changed_and_deleted(tenant: httpx2.AsyncClient) -> None:
    reply = await tenant.put(PATH, json=DAILY)
    assert reply.status_code == 201
    found = reply.json()
    assert found["description"] == "At 09:00 on Monday through Friday (Europe/Lisbon)"
    assert len(found["next_runs"]) == 5
    assert found["next_runs"] == sorted(found["next_runs"])
    assert (found["overlap"], found["catch_up"], found["paused"]) == ("skip", "last", False)
    assert (await tenant.put(PATH, json=DAILY | {"pool": "medium"})).status_code == 200
    assert (await tenant.get(PATH)).json()["pool"] == "medium"
    assert (await tenant.delete(PATH)).status_code == 204
    problem(await tenant.get(PATH), 404, "NOT_FOUND")
    problem(await tenant.delete(PATH), 404, "NOT_FOUND")


async def test_schedules_are_listed_by_name_page_by_page(tenant: httpx2.AsyncClient) -> None:
    for name in ("b", "a", "c"):
        await put(tenant, f"/v1/schedules/{name}")
    page = (await tenant.get("/v1/schedules?limit=2")).json()
    assert [one["name"] for one in page["schedules"]] == ["a", "b"]
    rest = (await tenant.get(f"/v1/schedules?cursor={page['next_cursor']}")).json()
    assert [one["name"] for one in rest["schedules"]] == ["c"]
    assert rest["next_cursor"] is None
    problem(await tenant.get("/v1/schedules?cursor=%00"), 400, "INVALID_CURSOR")
    problem(await tenant.get("/v1/schedules?limit=0"), 422, "INVALID_REQUEST", "limit")
    problem(await tenant.get("/v1/schedules?colour=red"), 422, "INVALID_REQUEST", "colour")


async def test_pause_and_resume(tenant: httpx2.AsyncClient) -> None:
    await put(tenant)
    paused = (await tenant.post(f"{PATH}/pause")).json()
    assert (paused["paused"], paused["next_runs"]) == (True, [])
    going = (await tenant.post(f"{PATH}/resume")).json()
    assert going["paused"] is False
    assert going["next_runs"]


async def test_trigger_makes_a_job_and_a_run(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await put(tenant, type=worker.type, tick_argument="at")
    reply = await tenant.post(f"{PATH}/trigger")
    assert reply.status_code == 202
    assert reply.headers["location"] == f"/v1/jobs/{reply.json()['id']}"
    await worker.hello()
    lease = await worker.run()
    assert lease["job"] == reply.json()["id"]
    assert lease["payload"]["kind"] == "daily"
    assert lease["payload"]["at"].endswith("Z")
    (run,) = (await tenant.get(f"{PATH}/runs")).json()["runs"]
    assert (run["job"], run["cause"], run["outcome"]) == (lease["job"], "trigger", "fired")


async def test_backfill_and_its_runs(tenant: httpx2.AsyncClient) -> None:
    await put(tenant, cron="0 * * * *")
    until = datetime.now(UTC) - timedelta(hours=1)
    body = {"since": (until - timedelta(hours=10)).isoformat(), "until": until.isoformat()}
    assert (await tenant.post(f"{PATH}/backfill", json=body)).json() == {"made": 10, "already": 0}
    assert (await tenant.post(f"{PATH}/backfill", json=body)).json() == {"made": 0, "already": 10}
    page = (await tenant.get(f"{PATH}/runs?limit=6")).json()
    rest = (
        await tenant.get(f"{PATH}/runs", params={"before": page["next_before"], "limit": 6})
    ).json()
    ticks = [run["tick"] for run in page["runs"] + rest["runs"]]
    assert len(ticks) == 10
    assert ticks == sorted(set(ticks), reverse=True)
    assert {run["cause"] for run in page["runs"]} == {"backfill"}
    future = body | {"until": (until + timedelta(days=2)).isoformat()}
    problem(await tenant.post(f"{PATH}/backfill", json=future), 422, "INVALID_REQUEST", "/until")


async def test_a_preview_keeps_nothing(tenant: httpx2.AsyncClient) -> None:
    body = {"every_seconds": 90, "type": "report"}
    found = (await tenant.post("/v1/schedule-preview", json=body)).json()
    assert found["description"] == "Every 90 seconds"
    assert len(found["next_runs"]) == 5
    assert (await tenant.get("/v1/schedules")).json()["schedules"] == []


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"cron": "* * 31 2 *"}, "/cron"),
    ({"cron": "* * * * * *"}, "/cron"),
    ({"cron": "*/0 * * * *"}, "/cron"),
    ({"cron": "x" * 300}, "/cron"),
    ({"every_seconds": 60}, "/cron"),
    ({"cron": None}, "/cron"),
    ({"cron": None, "every_seconds": 0.5}, "/every_seconds"),
    ({"timezone": "Mars/Base"}, "/timezone"),
    ({"timezone": "../../etc/passwd"}, "/timezone"),
    ({"tick_argument": "kind"}, "/tick_argument"),
    ({"payload": []}, "/payload"),
    ({"overlap": "explode"}, "/overlap"),
    ({"ends_at": "2001-01-01T00:00:00Z"}, "/ends_at"),
    ({"starts_at": "9000-01-01T00:00:00Z"}, "/starts_at"),
    ({"jitter_seconds": 1e9}, "/jitter_seconds"),
    ({"colour": "red"}, "/colour"),
]


@pytest.mark.parametrize(("change", "pointer"), REFUSED)
async def test_what_makes_no_sense_is_refused(
    tenant: httpx2.AsyncClient, change: dict[str, Any], pointer: str
) -> None:
    problem(await tenant.put(PATH, json=DAILY | change), 422, "INVALID_REQUEST", pointer)
    problem(await tenant.get(PATH), 404, "NOT_FOUND")


async def test_a_name_is_a_name(tenant: httpx2.AsyncClient) -> None:
    problem(await tenant.put("/v1/schedules/a%20b", json=DAILY), 422, "INVALID_REQUEST", "name")
    problem(await tenant.get("/v1/schedules/%00"), 404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", PATH), ("DELETE", PATH), ("POST", f"{PATH}/pause"), ("POST", f"{PATH}/resume"),
        ("POST", f"{PATH}/trigger"), ("GET", f"{PATH}/runs"),
    ],
)  # fmt: skip
async def test_nobody_touches_anothers_schedule(
    tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient, method: str, path: str
) -> None:
    await put(tenant)
    problem(await stranger.request(method, path), 404, "NOT_FOUND")
    assert (await tenant.get(PATH)).status_code == 200


BOMBS = ["*/30 0 * 2 MON#5", "*/30 0 29 2 *", "* 0 */31 * MON#5"]  # once in 28 years, 4, never


async def test_no_expression_holds_up_everybody_else(
    house: House, tenant: httpx2.AsyncClient
) -> None:
    stalls = house.platform.stalls
    house.inside(forget_stalls)
    for number, cron in enumerate(BOMBS):
        wanted = {"cron": cron, "timezone": "Europe/Lisbon", "type": "t"}
        reply = await tenant.post("/v1/schedule-preview", json=wanted)
        assert reply.status_code in (200, 422), reply.text
        if reply.status_code == 422:
            assert reply.json()["errors"][0]["pointer"] == "/cron"
        for copy in range(5):
            await tenant.put(f"/v1/schedules/bomb-{number}-{copy}", json=wanted)
    assert len((await tenant.get("/v1/schedules")).json()["schedules"]) >= 10
    assert stalls.longest().busy_seconds < 0.1


async def test_a_backfill_is_bounded_by_work_as_well_as_by_ticks(
    tenant: httpx2.AsyncClient,
) -> None:
    await put(tenant, cron=BOMBS[0], timezone="Europe/Lisbon")
    span = {"since": "0100-01-02T00:00:00Z", "until": "2026-01-01T00:00:00Z"}
    problem(
        await tenant.post(f"{PATH}/backfill", json=span), 422, "INVALID_REQUEST", pointer="/since"
    )


async def forget_stalls(platform: Platform) -> None:
    platform.stalls.forget()
