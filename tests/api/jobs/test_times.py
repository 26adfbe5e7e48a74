"""Times over HTTP: when a job is due, its last moment, another time, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from tests.api.house import problem
from tests.api.worker import HandWorker


def moment(**ahead: float) -> str:
    return (datetime.now(UTC) + timedelta(**ahead)).isoformat()


async def submit(tenant: httpx2.AsyncClient, **body: Any) -> dict[str, Any]:
    reply = await tenant.post("/v1/jobs", json={"type": "later", **body})
    assert reply.status_code == 202, reply.text
    found: dict[str, Any] = reply.json()
    return found


async def view(tenant: httpx2.AsyncClient, job: str) -> dict[str, Any]:
    found: dict[str, Any] = (await tenant.get(f"/v1/jobs/{job}")).json()
    return found


async def test_a_job_says_when_it_is_due(tenant: httpx2.AsyncClient) -> None:
    due = moment(minutes=30)
    accepted = await submit(tenant, execute_at=due, not_after=moment(hours=1), on_late="flag")
    assert accepted["state"] == "scheduled"
    found = await view(tenant, accepted["id"])
    assert found["state"] == "scheduled"
    assert abs(datetime.fromisoformat(found["execute_at"]) - datetime.fromisoformat(due)) < (
        timedelta(milliseconds=2)
    )
    assert found["on_late"] == "flag"
    assert found["late_seconds"] is None
    listed = (await tenant.get("/v1/jobs?state=scheduled")).json()["jobs"]
    assert [job["id"] for job in listed] == [accepted["id"]]


async def test_a_run_says_how_late_it_began(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    accepted = await submit(tenant, type=worker.type, execute_at=moment(seconds=-3))
    assert accepted["state"] == "queued"
    await worker.hello()
    await worker.run()
    found = await view(tenant, accepted["id"])
    assert found["state"] == "succeeded"
    assert 2.9 <= found["late_seconds"] < 20


async def test_a_delay_runs_after_it(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    accepted = await submit(tenant, type=worker.type, delay_seconds=0.4)
    await worker.hello()
    await worker.run()
    found = await view(tenant, accepted["id"])
    began, due = (datetime.fromisoformat(found[name]) for name in ("started_at", "execute_at"))
    assert began >= due - timedelta(milliseconds=5)


async def test_a_batch_mixes_times(tenant: httpx2.AsyncClient) -> None:
    jobs = [
        {"type": "later"},
        {"type": "later", "delay_seconds": 600},
        {"type": "later", "on_late": "skip"},
    ]
    reply = (await tenant.post("/v1/jobs/batch", json={"jobs": jobs})).json()
    assert [item["status"] for item in reply["items"]] == [202, 202, 422]
    states = [(await view(tenant, item["id"]))["state"] for item in reply["items"][:2]]
    assert states == ["queued", "scheduled"]


async def test_a_replay_says_scheduled_too(tenant: httpx2.AsyncClient) -> None:
    body = {"type": "later", "delay_seconds": 600}
    headers = {"idempotency-key": "once"}
    first, again = [
        (await tenant.post("/v1/jobs", json=body, headers=headers)).json() for _ in range(2)
    ]
    assert first == again
    assert again["state"] == "scheduled"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"execute_at": "2030-01-01T00:00:00Z", "delay_seconds": 1}, "/delay_seconds"),
    ({"execute_at": "2030-01-01T00:00:00"}, "/execute_at"),
    ({"execute_at": "9999-01-01T00:00:00Z"}, "/execute_at"),
    ({"execute_at": 5}, "/execute_at"),
    ({"delay_seconds": -1}, "/delay_seconds"),
    ({"delay_seconds": 10**10}, "/delay_seconds"),
    ({"on_late": "skip"}, "/on_late"),
    ({"not_after": "2030-01-01T00:00:00Z", "on_late": "panic"}, "/on_late"),
    (
        {"execute_at": "2031-01-01T00:00:00Z", "not_after": "2030-01-01T00:00:00Z"},
        "/not_after",
    ),
]


@pytest.mark.parametrize(("times", "pointer"), REFUSED)
async def test_times_that_make_no_sense_are_refused(
    tenant: httpx2.AsyncClient, times: dict[str, Any], pointer: str
) -> None:
    reply = await tenant.post("/v1/jobs", json={"type": "later", **times})
    problem(reply, 422, "INVALID_REQUEST", pointer)


# -- another time --------------------------------------------------------------------------------


async def test_a_scheduled_job_can_be_moved(tenant: httpx2.AsyncClient) -> None:
    job = (await submit(tenant, delay_seconds=600))["id"]
    before = await tenant.get(f"/v1/jobs/{job}")
    reply = await tenant.patch(f"/v1/jobs/{job}", json={"execute_at": moment(minutes=50)})
    assert reply.status_code == 200
    assert reply.json()["execute_at"] > before.json()["execute_at"]
    again = await tenant.get(f"/v1/jobs/{job}", headers={"if-none-match": before.headers["etag"]})
    assert again.status_code == 200, "its ETag has changed"


async def test_only_a_scheduled_job_can_be_moved(tenant: httpx2.AsyncClient) -> None:
    job = (await submit(tenant))["id"]
    problem(await tenant.patch(f"/v1/jobs/{job}", json={"delay_seconds": 5}), 409, "CONFLICT")


async def test_a_move_needs_a_time(tenant: httpx2.AsyncClient) -> None:
    job = (await submit(tenant, delay_seconds=600))["id"]
    problem(await tenant.patch(f"/v1/jobs/{job}", json={}), 422, "INVALID_REQUEST", "/execute_at")
    problem(await tenant.patch(f"/v1/jobs/{job}", content=b"{"), 400, "INVALID_JSON")


async def test_nobody_moves_anothers_job(
    tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient
) -> None:
    job = (await submit(tenant, delay_seconds=600))["id"]
    problem(await stranger.patch(f"/v1/jobs/{job}", json={"delay_seconds": 5}), 404, "NOT_FOUND")
