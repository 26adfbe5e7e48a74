"""What runs said, over HTTP: from workers that hold a lease, to the tenant whose job it is."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.jobs.test_jobs import submit
from tests.api.worker import HandWorker

from fairway.core.run.run_log import LINE_BYTES_MAX, LINES_MAX
from fairway.services.jobs.job_logs import CHUNKS_AT_ONCE
from fairway.services.workers import run_logs

KEEP = "/v1/workers/hand-1/logs"


def line(n: int, text: str = "", level: int = 20, **more: Any) -> dict[str, Any]:
    return {"n": n, "at_ms": 1_769_860_800_000 + n, "level": level, "text": text or f"{n}", **more}


def said(worker: HandWorker, lease: dict[str, Any], *lines: dict[str, Any]) -> dict[str, Any]:
    return worker.holding(lease, attempt=lease["attempt"], lines=list(lines))


async def keep(worker: HandWorker, *runs: dict[str, Any]) -> dict[str, int]:
    reply = await worker.client.post(KEEP, json={"runs": list(runs)})
    assert reply.status_code == 200, reply.text
    found: dict[str, int] = reply.json()
    return found


async def leased(tenant: httpx2.AsyncClient, worker: HandWorker) -> dict[str, Any]:
    await worker.hello()
    await submit(tenant, worker.type)
    return await worker.lease()


async def texts(tenant: httpx2.AsyncClient, job: str, **query: Any) -> list[str]:
    reply = await tenant.get(f"/v1/jobs/{job}/logs", params=query)
    assert reply.status_code == 200, reply.text
    return [one["text"] for one in reply.json()["lines"]]


async def test_lines_are_kept_in_order_by_attempt(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    first = await leased(tenant, worker)
    assert await keep(worker, said(worker, first, line(2), line(1, "begun", 30))) == {
        "kept": 2, "dropped": 0,
    }  # fmt: skip
    await keep(worker, said(worker, first, line(2), line(3, "… 5 lines dropped", dropped=5)))
    await worker.tell(worker.report(first, "failed", failure="app_error", delay_ms=1))
    second = await worker.lease()
    await keep(worker, said(worker, second, line(1, "again")))
    page = (await tenant.get(f"/v1/jobs/{first['job']}/logs")).json()
    assert page["next_cursor"] is None
    assert page["lines"][0] == {
        "attempt": 1, "at": "2026-01-31T12:00:00.001000Z", "level": "warning", "text": "begun",
        "dropped": 0,
    }  # fmt: skip
    assert [one["dropped"] for one in page["lines"]] == [0, 0, 5, 0]
    assert await texts(tenant, first["job"], attempt=2) == ["again"]
    assert await texts(tenant, first["job"], attempt=1) == ["begun", "2", "… 5 lines dropped"]
    await worker.tell(worker.report(second))


async def test_pages_follow_each_other(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    lease = await leased(tenant, worker)
    for start in range(1, 100, 7):  # many small chunks, more than one look reads
        await keep(worker, *(said(worker, lease, line(n)) for n in range(start, start + 7)))
    found: list[str] = []
    cursor = None
    while cursor is not None or not found:
        query = {"limit": 30} | ({"cursor": cursor} if cursor else {})
        page = (await tenant.get(f"/v1/jobs/{lease['job']}/logs", params=query)).json()
        assert len(page["lines"]) <= 30
        found += [one["text"] for one in page["lines"]]
        cursor = page["next_cursor"]
    assert found == [str(n) for n in range(1, 106)]
    await worker.tell(worker.report(lease))


async def test_a_chunk_that_comes_twice_at_one_moment_spoils_nobodys(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    """As when a call is sent again while its first try still waits to be written."""
    lease = await leased(tenant, worker)
    again = said(worker, lease, line(1, "once"))
    assert await keep(worker, again, again, said(worker, lease, line(2, "other's"))) == {
        "kept": 3, "dropped": 0,
    }  # fmt: skip
    assert await texts(tenant, lease["job"]) == ["once", "other's"]
    await worker.tell(worker.report(lease))


async def test_nobody_speaks_for_others(
    house: House, tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient, worker: HandWorker
) -> None:
    lease = await leased(tenant, worker)
    forged = {**said(worker, lease, line(1, "forged")), "token": "0" * 32}
    assert await keep(worker, forged) == {"kept": 0, "dropped": 1}
    foreign, _ = house.new_tenant()
    key = house.new_key({"scope": "worker", "tenant": foreign})
    async with house.caller(key) as other:
        body = {"runs": [said(worker, lease, line(1, "of another's worker"))]}
        problem(await other.post(KEEP, json=body), 403, "FORBIDDEN")
    await keep(worker, said(worker, lease, line(1, "real")))
    assert await texts(tenant, lease["job"]) == ["real"]
    problem(await stranger.get(f"/v1/jobs/{lease['job']}/logs"), 404, "NOT_FOUND")
    await worker.tell(worker.report(lease))


@pytest.mark.parametrize(
    ("lines", "field"),
    [
        ([line(LINES_MAX + 1)], "/runs/0/lines/0/n"),
        ([line(1, "x" * (LINE_BYTES_MAX + 1))], "/runs/0/lines/0/text"),
        ([], "/runs/0/lines"),
        ([line(1, at_ms=-1)], "/runs/0/lines/0/at_ms"),
    ],
)
async def test_what_is_too_much_is_refused(
    tenant: httpx2.AsyncClient, worker: HandWorker, lines: list[dict[str, Any]], field: str
) -> None:
    lease = await leased(tenant, worker)
    reply = await worker.client.post(KEEP, json={"runs": [said(worker, lease, *lines)]})
    problem(reply, 422, "INVALID_REQUEST", field)
    await worker.tell(worker.report(lease))


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ({"attempt": "0"}, 422, "INVALID_REQUEST"),
        ({"limit": "1001"}, 422, "INVALID_REQUEST"),
        ({"cursor": "1.2.3"}, 400, "INVALID_CURSOR"),
        ({"cursor": f"{1 << 63}.1"}, 400, "INVALID_CURSOR"),
        ({"level": "info"}, 422, "INVALID_REQUEST"),
    ],
)
async def test_questions_that_make_no_sense(
    tenant: httpx2.AsyncClient, query: dict[str, str], status: int, code: str
) -> None:
    job = await submit(tenant, "nobody.runs.this")
    problem(await tenant.get(f"{job}/logs", params=query), status, code)


async def test_a_tenant_has_so_much_and_a_mark_tells_of_the_rest(
    tenant: httpx2.AsyncClient, worker: HandWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = await leased(tenant, worker)
    monkeypatch.setattr(run_logs, "BURST_BYTES", 1000)
    monkeypatch.setattr(run_logs, "BYTES_PER_SECOND", 1)
    much = said(worker, lease, line(1, "x" * 600))
    assert await keep(worker, much) == {"kept": 1, "dropped": 0}
    more = said(worker, lease, line(2, "x" * 600), line(3))
    monkeypatch.setattr(run_logs, "MARKS_BURST", 1)
    still_more = said(worker, lease, line(4, "x" * 600))  # for which there is no mark either
    assert await keep(worker, more, still_more) == {"kept": 0, "dropped": 3}
    assert await texts(tenant, lease["job"]) == ["x" * 600, "… 2 lines dropped"]
    await worker.tell(worker.report(lease))


async def test_who_says_a_run_twice_spoils_it_for_nobody(
    tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await submit(tenant, worker.type)
    await submit(stranger, worker.type)
    await worker.hello(slots=2)
    leases = [await worker.lease(), await worker.lease()]
    twice, other = (said(worker, lease, line(1, "once")) for lease in leases)
    await asyncio.gather(*(keep(worker, twice, twice, other) for _ in "ab"))
    for caller in (tenant, stranger):
        (job,) = (await caller.get("/v1/jobs")).json()["jobs"]
        assert await texts(caller, job["id"]) == ["once"]
    for lease in leases:
        await worker.tell(worker.report(lease))


async def test_marks_of_overlapping_lines_are_passed_by(
    tenant: httpx2.AsyncClient, worker: HandWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = await leased(tenant, worker)
    monkeypatch.setattr(run_logs, "BURST_BYTES", 1)
    monkeypatch.setattr(run_logs, "BYTES_PER_SECOND", 1)
    await keep(worker, said(worker, lease, line(1)))
    last = 2 * CHUNKS_AT_ONCE + 1
    await keep(worker, *(said(worker, lease, line(n), line(last)) for n in range(2, last)))
    page = (await tenant.get(f"/v1/jobs/{lease['job']}/logs")).json()
    rest = await texts(tenant, lease["job"], cursor=page["next_cursor"])
    assert len(page["lines"]) == len(rest) == CHUNKS_AT_ONCE
    await worker.tell(worker.report(lease))


async def test_a_stream_tells_lines_as_they_come_and_then_the_end(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    lease = await leased(tenant, worker)
    await keep(worker, said(worker, lease, line(1, "before")))
    heard: list[tuple[str, str]] = []
    headers, news = {"accept": "text/event-stream"}, asyncio.Event()

    async def follow(**more: str) -> None:
        address = f"/v1/jobs/{lease['job']}/logs"
        async with tenant.stream("GET", address, headers={**headers, **more}) as stream:
            async for text in stream.aiter_lines():
                if text.startswith("id: "):
                    heard.append((text[4:], ""))
                if text.startswith("data: ") and (told := json.loads(text[6:])):
                    heard[-1] = (heard[-1][0], told["text"])
                    news.set()

    following = asyncio.create_task(follow())
    await news.wait()
    news.clear()
    await keep(worker, said(worker, lease, line(2, "live")))
    await news.wait()
    await worker.tell(worker.report(lease))
    await keep(worker, said(worker, lease, line(3, "last words")))
    await following
    assert [text for _, text in heard] == ["before", "live", "last words"]
    first = heard[0][0]
    heard.clear()
    await follow(**{"last-event-id": first})
    assert [text for _, text in heard] == ["live", "last words"]
