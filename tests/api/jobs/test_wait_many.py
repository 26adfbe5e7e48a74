"""One call waits for many jobs, and everybody in a process who waits for results shares it."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.api.house import House, open_house, problem
from tests.api.jobs.test_jobs import UNKNOWN
from tests.api.test_refused_work import taken
from tests.services.platform_room import HANG_SECONDS, until

from fairway import App, Handle, JobEnded, NotFound, StillRunning
from fairway.api.jobs.wait_many import TOLD_MAX
from fairway.core.errors import Unavailable
from fairway.core.ids import make_job_id, shard_of, unix_ms_of
from fairway.sdk.client import shared_waits
from fairway.sdk.http.transport import NotNow, Question

WAIT = "/v1/jobs/wait"


async def new_jobs(tenant: httpx2.AsyncClient, count: int) -> list[str]:
    body = {"jobs": [{"type": "nobody.runs.this"}] * count}
    reply = await tenant.post("/v1/jobs/batch", json=body)
    return [str(item["id"]) for item in reply.json()["items"]]


async def ask(tenant: httpx2.AsyncClient, ids: list[str], **more: Any) -> Any:
    reply = await tenant.post(WAIT, json={"ids": ids, **more})
    assert reply.status_code == 200, reply.text
    return reply.json()


async def test_it_answers_when_any_has_ended(tenant: httpx2.AsyncClient, house: House) -> None:
    ids = await new_jobs(tenant, 3)
    assert await ask(tenant, ids) == {"jobs": [], "missing": []}
    waiting = asyncio.create_task(ask(tenant, ids, wait_seconds=30))
    watchers = house.platform.watchers
    await until(lambda: set(ids) <= {job for _, job in watchers.watched()})
    await tenant.delete(f"/v1/jobs/{ids[1]}")
    told = await waiting
    assert [(job["id"], job["state"]) for job in told["jobs"]] == [(ids[1], "cancelled")]
    everything = await ask(tenant, ids, all=True)
    assert {job["id"]: job["state"] for job in everything["jobs"]} == {
        ids[0]: "queued", ids[1]: "cancelled", ids[2]: "queued"
    }  # fmt: skip


async def test_a_later_call_of_the_same_caller_takes_its_place(
    tenant: httpx2.AsyncClient, house: House
) -> None:
    ids = await new_jobs(tenant, 2)
    first = asyncio.create_task(ask(tenant, ids[:1], wait_seconds=60, caller="me"))
    await until(lambda: ids[0] in {job for _, job in house.platform.watchers.watched()})
    await ask(tenant, ids[1:])  # by then the first has looked, and waits
    second = asyncio.create_task(ask(tenant, ids, wait_seconds=60, caller="me"))
    async with asyncio.timeout(HANG_SECONDS):
        assert await first == {"jobs": [], "missing": []}
        await tenant.delete(f"/v1/jobs/{ids[0]}")
        assert [job["id"] for job in (await second)["jobs"]] == ids[:1]


async def test_what_is_not_the_tenants_is_missing(tenant: httpx2.AsyncClient, house: House) -> None:
    (mine,) = await new_jobs(tenant, 1)
    no_job = make_job_id(shard_of(mine), unix_ms_of(mine), 1, 7)
    async with house.caller(house.new_tenant()[1]) as other:
        told = await ask(other, [mine, no_job], wait_seconds=60)
    assert sorted(told["missing"]) == sorted([mine, no_job])
    assert told["jobs"] == []


async def test_of_many_that_are_missing_the_first_are_told(tenant: httpx2.AsyncClient) -> None:
    (mine,) = await new_jobs(tenant, 1)
    absent = [make_job_id(shard_of(mine), unix_ms_of(mine), n, 7) for n in range(1, 501)]
    for left in (500, 300, 100):
        missing = (await ask(tenant, [mine, *absent], wait_seconds=60))["missing"]
        assert len(missing) == min(left, TOLD_MAX)
        absent = [job for job in absent if job not in missing]
    assert not absent


async def test_long_calls_of_a_tenant_are_looked_at_one_by_one_until_they_wait(
    house: House, stranger: httpx2.AsyncClient
) -> None:
    name, key = house.new_tenant()
    tenant, watchers = house.platform.directory.id_of(name), house.platform.watchers
    async with house.caller(key) as caller:
        ids, theirs = await new_jobs(caller, 150), await new_jobs(stranger, 150)
        with taken(house, house.platform.long_looks, tenant):
            first = asyncio.create_task(ask(caller, ids, wait_seconds=60))
            assert await ask(caller, ids[:10]) == {"jobs": [], "missing": []}
            assert await ask(stranger, theirs) == {"jobs": [], "missing": []}
            assert not set(ids) & {job for _, job in watchers.watched()}
        await until(lambda: set(ids) <= {job for _, job in watchers.watched()})
        assert await ask(caller, ids) == {"jobs": [], "missing": []}
        assert not first.done()
        await caller.delete(f"/v1/jobs/{ids[0]}")
        assert len((await first)["jobs"]) == 1


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"ids": []}, "/ids"),
        ({"ids": ["a"] * 1001}, "/ids"),
        ({"ids": ["a"], "wait_seconds": 61}, "/wait_seconds"),
        ({"ids": [UNKNOWN, "nonsense"], "wait_seconds": 60}, "/ids/1"),
        ({"ids": [UNKNOWN, ""], "all": True}, "/ids/1"),
    ],
)
async def test_what_it_takes_is_bounded(
    tenant: httpx2.AsyncClient, body: Any, pointer: str
) -> None:
    reply = await tenant.post(WAIT, json=body)
    assert problem(reply, 422, "INVALID_REQUEST")["errors"][0]["pointer"].startswith(pointer)


def connections_to(*houses: House) -> int:
    ports, is_established = {f"{house.port:04X}" for house in houses}, "01"
    rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    return sum(row[2].rpartition(":")[2] in ports and row[3] == is_established for row in rows)


async def test_an_id_is_the_same_however_it_is_written(tenant: httpx2.AsyncClient) -> None:
    (job,) = await new_jobs(tenant, 1)
    told = await ask(tenant, [job.upper(), job], all=True)
    assert ([one["id"] for one in told["jobs"]], told["missing"]) == ([job], [])


async def test_what_is_no_id_spoils_nobody_elses_wait(
    tenant: httpx2.AsyncClient, house: House
) -> None:
    key = tenant.headers["authorization"].removeprefix("Bearer ")
    (job,), app = await new_jobs(tenant, 1), App("many", url=house.url, api_key=key)
    waiting = asyncio.create_task(Handle.from_id(app, job.upper()).aresult())
    await until(lambda: job in {one for _, one in house.platform.watchers.watched()})
    with pytest.raises(NotFound, match="nonsense"):
        await Handle.from_id(app, "nonsense").aresult()
    assert not waiting.done()
    await tenant.delete(f"/v1/jobs/{job}")
    async with asyncio.timeout(HANG_SECONDS):
        with pytest.raises(JobEnded):
            await waiting
    await app.aclose()


async def test_hundreds_of_results_share_two_connections(
    tenant: httpx2.AsyncClient, house: House
) -> None:
    key = tenant.headers["authorization"].removeprefix("Bearer ")
    ids = await new_jobs(tenant, 300)
    before = connections_to(house)
    app = App("many", url=house.url, api_key=key)
    waits = [asyncio.create_task(Handle.from_id(app, id_).aresult()) for id_ in ids[:-2]]
    soon = asyncio.create_task(Handle.from_id(app, ids[-2]).aresult(timeout="200ms"))
    unknown = make_job_id(shard_of(ids[0]), unix_ms_of(ids[0]), 1, 9)
    nobody = asyncio.create_task(Handle.from_id(app, unknown).aresult())
    await until(lambda: set(ids[1:-2]) <= {job for _, job in house.platform.watchers.watched()})
    assert connections_to(house) - before <= 2
    waits[5].cancel()
    with pytest.raises(StillRunning, match="is queued after"):
        await soon
    with pytest.raises(NotFound):
        await nobody
    assert not any(one.done() for one in waits if one is not waits[5])
    late = asyncio.create_task(Handle.from_id(app, ids[-1]).aresult())
    await tenant.delete(f"/v1/jobs/{ids[-1]}")
    with pytest.raises(JobEnded):
        await late
    await tenant.post("/v1/bulk-actions", json={"act": "cancel", "all": True})
    async with asyncio.timeout(HANG_SECONDS):
        ends = await asyncio.gather(*waits, return_exceptions=True)
    assert {type(end).__name__ for end in ends} == {"JobCancelled", "CancelledError"}
    assert connections_to(house) - before <= 2
    await app.aclose()


async def test_missing_jobs_are_not_asked_for_one_by_one_while_nobody_answers(
    tenant: httpx2.AsyncClient, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would take as long as the first, and all who share the line wait behind them."""
    key = tenant.headers["authorization"].removeprefix("Bearer ")
    (known,) = await new_jobs(tenant, 1)
    unknown = [make_job_id(shard_of(known), unix_ms_of(known), 1, n) for n in (5, 7, 9)]
    asked, ask_for = list[str](), shared_waits.WaitLine._ask_for

    async def once_silent(line: shared_waits.WaitLine, question: Question, seconds: float) -> bytes:
        asked.append(question.method)
        if question.method == "GET" and asked.count("GET") == 1:
            raise NotNow(Unavailable())
        return await ask_for(line, question, seconds)

    monkeypatch.setattr(shared_waits.WaitLine, "_ask_for", once_silent)
    app = App("many", url=house.url, api_key=key)
    waits = [asyncio.create_task(Handle.from_id(app, one).aresult()) for one in (known, *unknown)]
    async with asyncio.timeout(HANG_SECONDS):
        ends = await asyncio.gather(*waits[1:], return_exceptions=True)
    assert {type(end) for end in ends} == {NotFound}
    first = asked.index("GET")
    assert asked[first : first + 2] == ["GET", "POST"]
    waits[0].cancel()
    await app.aclose()


async def test_more_than_one_call_can_name_have_their_turns(
    tenant: httpx2.AsyncClient, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_waits, "IDS_MAX", 2)
    monkeypatch.setattr(shared_waits, "TURN_SECONDS", 0.1)
    key = tenant.headers["authorization"].removeprefix("Bearer ")
    ids, app = await new_jobs(tenant, 6), App("many", url=house.url, api_key=key)
    waits = [asyncio.create_task(Handle.from_id(app, id_).aresult()) for id_ in ids]
    await until(lambda: len({job for _, job in house.platform.watchers.watched()} & {*ids}) >= 2)
    await tenant.delete(f"/v1/jobs/{ids[-1]}")  # the others go on waiting, and are named first
    async with asyncio.timeout(HANG_SECONDS):
        with pytest.raises(JobEnded):
            await waits[-1]
    assert not any(one.done() for one in waits[:-1])
    await tenant.post("/v1/bulk-actions", json={"act": "cancel", "all": True})
    async with asyncio.timeout(HANG_SECONDS):
        await asyncio.gather(*waits, return_exceptions=True)
    await app.aclose()


async def test_waits_go_on_at_another_server(tenant: httpx2.AsyncClient, house: House) -> None:
    key = tenant.headers["authorization"].removeprefix("Bearer ")
    ids = await new_jobs(tenant, 3)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with open_house(house.dsn) as second:
        app = App("many", url=f"{nobody},{second.url}", api_key=key)
        waits = [asyncio.create_task(Handle.from_id(app, id_).aresult()) for id_ in ids]
        await until(lambda: set(ids[1:]) <= {job for _, job in house.platform.watchers.watched()})
        await tenant.post("/v1/bulk-actions", json={"act": "cancel", "all": True})
        async with asyncio.timeout(HANG_SECONDS):
            ends = await asyncio.gather(*waits, return_exceptions=True)
        assert [type(end).__name__ for end in ends] == ["JobCancelled"] * 3
        await app.aclose()
