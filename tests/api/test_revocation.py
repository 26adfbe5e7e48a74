"""Revoking a key, as those hear of it who are in the middle of something: within five seconds."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import asyncpg
import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.jobs.test_jobs import submit
from tests.api.jobs.test_uploads import put
from tests.api.test_body_room import deaf, unread
from tests.api.test_server_places import LARGE, sending, stored
from tests.api.test_uploads import begin_put, flying, heard, new_url, uploaded
from tests.api.test_uploads import stored as objects
from tests.api.worker import HandWorker

SECONDS = 5.0

Revoke = Callable[[str], Awaitable[None]]


@pytest.fixture(params=["here", "on another server"])
def revoke(request: pytest.FixtureRequest, house: House, operator: httpx2.AsyncClient) -> Revoke:
    async def here(key: str) -> None:
        assert (await operator.delete(f"/v1/keys/{key.split('_')[2]}")).status_code == 204

    async def elsewhere(key: str) -> None:
        """All that this server can see of it: the key's row has changed."""
        connection = await asyncpg.connect(house.dsn)
        await connection.execute(
            "UPDATE api_keys SET revoked_at = now() WHERE id = $1", key.split("_")[2]
        )
        await connection.close()

    return here if request.param == "here" else elsewhere


@asynccontextmanager
async def within_five_seconds() -> AsyncIterator[None]:
    began = time.monotonic()
    async with asyncio.timeout(2 * SECONDS):
        yield
    assert time.monotonic() - began < SECONDS


async def until_remembered(house: House, key: str, *, is_so: bool = True) -> None:
    """Until the server lets this key in without a question, or no longer does."""
    directory = house.platform.directory
    async with asyncio.timeout(SECONDS):
        while (directory.known(key) is not None) != is_so:  # noqa: ASYNC110  # it tells nobody
            await asyncio.sleep(0.01)


async def test_an_event_stream_ends_with_its_key(house: House, revoke: Revoke) -> None:
    """S10: it went on telling for as long as somebody listened."""
    _, key = house.new_tenant()
    async with house.caller(key) as caller, house.caller(key) as other:
        location = await submit(caller)
        async with caller.stream("GET", f"{location}/events") as stream:
            assert stream.status_code == 200
            lines = stream.aiter_lines()
            while not (await anext(lines)).startswith("data"):
                continue
            await revoke(key)
            async with within_five_seconds():
                assert not [line async for line in lines if line], "nothing more is told"
        problem(await other.get(f"{location}/events"), 401, "UNAUTHENTICATED")


async def test_a_stream_of_another_key_of_the_tenant_goes_on(
    house: House, worker: HandWorker, revoke: Revoke
) -> None:
    name, key = house.new_tenant()
    new = house.new_key({"scope": "tenant", "tenant": name})
    async with house.caller(key) as before, house.caller(new) as after:
        location = await submit(before, worker.type)
        async with after.stream("GET", f"{location}/events") as stream:
            lines = stream.aiter_lines()
            await revoke(key)
            async with within_five_seconds():
                while (await before.get(location)).status_code == 200:
                    continue
            await worker.hello()
            await worker.run()
            async with asyncio.timeout(SECONDS):
                assert [line async for line in lines if line == "event: succeeded"]


async def test_a_request_that_waits_is_refused_when_its_key_is_revoked(
    house: House, revoke: Revoke
) -> None:
    name, key = house.new_tenant()
    async with house.caller(key) as caller:
        location = await submit(caller)
        waiting = asyncio.create_task(caller.get(location, headers={"prefer": "wait=30"}))
        await until_waiting(house, name)
        await revoke(key)
        async with within_five_seconds():
            problem(await waiting, 401, "UNAUTHENTICATED")


async def test_a_submission_that_waits_hears_that_it_was_accepted(
    house: House, revoke: Revoke
) -> None:
    """The job is on disk: to refuse it now would be a lie. More than that is not told."""
    name, key = house.new_tenant()
    async with house.caller(key) as caller:
        headers, body = {"prefer": "wait=30"}, {"type": f"never.{secrets.token_hex(4)}"}
        waiting = asyncio.create_task(caller.post("/v1/jobs", json=body, headers=headers))
        await until_waiting(house, name)
        await revoke(key)
        async with within_five_seconds():
            reply = await waiting
        assert reply.status_code == 202
        assert reply.json().keys() == {"id", "state"}
        assert "preference-applied" not in reply.headers


async def until_waiting(house: House, tenant: str) -> None:
    """Somebody of this tenant waits for a job of its."""
    number = house.platform.directory.tenant_ids[tenant]
    async with asyncio.timeout(SECONDS):
        while number not in dict(house.platform.watchers.watched()):  # noqa: ASYNC110  (nobody tells)
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("is_own", [True, False], ids=["own tenant's", "shared"])
async def test_a_workers_sessions_end_and_its_jobs_go_to_others(
    house: House, worker: HandWorker, revoke: Revoke, *, is_own: bool
) -> None:
    name, tenant_key = house.new_tenant()
    wanted = {"scope": "worker", "tenant": name} if is_own else {"scope": "worker"}
    key = house.new_key(wanted)
    async with house.caller(tenant_key) as tenant, house.caller(key) as line:
        revoked = HandWorker(line)
        revoked.type = worker.type
        await revoked.hello(pool="medium")
        location = await submit(tenant, worker.type, pool="medium")
        lease = await revoked.lease()
        held = asyncio.create_task(revoked.post(wait_ms=20_000))
        await asyncio.sleep(0.1)
        await revoke(key)
        async with within_five_seconds():
            problem(await held, 401, "UNAUTHENTICATED")
            await worker.hello(pool="medium")
            again = await worker.lease()
        assert again["job"] == lease["job"]
        assert (again["attempt"], again["delivery"]) == (1, 2)
        late = await revoked.post(reports=[revoked.report(lease, result="of nobody")])
        problem(late, 401, "UNAUTHENTICATED")
        await worker.tell(worker.report(again, result="of the heir"))
        assert (await tenant.get(location)).json()["result"] == "of the heir"


async def test_a_call_whose_body_came_slowly_opens_no_session(
    house: House, operator: httpx2.AsyncClient
) -> None:
    """Its key was looked at before the body came, and revoked meanwhile."""
    key, session = house.new_key({"scope": "worker"}), secrets.token_hex(16)
    body = b'{"session":"%s","hello":{"types":[],"slots":{}}}' % session.encode()
    head = (
        f"POST /v1/workers/slow/exchange HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", house.port)
    writer.write(head.encode() + body[:10])
    await asyncio.sleep(0.2)
    assert (await operator.delete(f"/v1/keys/{key.split('_')[2]}")).status_code == 204
    writer.write(body[10:])
    answer = await asyncio.wait_for(reader.readline(), SECONDS)
    assert b" 401 " in answer
    assert session not in house.platform.dispatcher.sessions
    writer.close()


async def test_a_session_is_named_by_its_own_key_only_and_shown_to_nobody(
    house: House, operator: httpx2.AsyncClient, worker: HandWorker
) -> None:
    """S9."""
    await worker.hello()
    shown = await operator.get("/v1/workers")
    assert worker.session not in shown.text
    life = hashlib.sha256(worker.session.encode()).hexdigest()[:16]  # nobody finds the way back
    assert life in [one["life"] for one in shown.json()["workers"]]
    async with house.caller(house.new_key({"scope": "worker"})) as line:
        thief = HandWorker(line)
        thief.session = worker.session
        messages: list[dict[str, Any]] = [
            {}, {"goodbye": True}, {"hello": {"types": [], "slots": {}}},
        ]  # fmt: skip
        for message in messages:
            problem(await thief.post(**message), 403, "SESSION_OF_ANOTHER_KEY", "/session")
    assert "resync" not in await worker.say()
    problem(await operator.post(f"/v1/workers/{worker.session}/drain"), 404, "NOT_FOUND")
    asked = await operator.post(f"/v1/workers/{life}/drain")
    assert asked.status_code == 202
    assert worker.session not in asked.text
    assert (await worker.say())["drain"] is True


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs/batch"])
async def test_a_body_that_was_long_on_its_way_makes_no_job(
    house: House, revoke: Revoke, path: str
) -> None:
    """The key was looked at with the head: by the time all is there it opens nothing."""
    _, key = house.new_tenant()
    body = b'{"type":"t","payload":{}}' if path == "/v1/jobs" else b'{"jobs":[{"type":"t"}]}'
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", house.port)
    writer.write(head.encode() + body[:-1])
    await writer.drain()
    await until_remembered(house, key)
    await revoke(key)
    await until_remembered(house, key, is_so=False)
    writer.write(body[-1:])
    assert b" 401 " in await asyncio.wait_for(reader.readline(), SECONDS)
    writer.close()


# -- uploads and downloads -----------------------------------------------------------------------


async def until_known(caller: httpx2.AsyncClient) -> None:
    """This server has heard that the caller's key is revoked."""
    async with within_five_seconds():
        while (await caller.get("/v1/jobs")).status_code == 200:  # noqa: ASYNC110  (nobody tells)
            await asyncio.sleep(0.05)


async def test_an_address_is_good_for_as_long_as_the_key_that_asked_for_it(
    house: House, revoke: Revoke
) -> None:
    name, key = house.new_tenant()
    other = house.new_key({"scope": "tenant", "tenant": name})
    async with house.caller(key) as caller, house.caller(other) as colleague:
        url, theirs = await new_url(caller), await new_url(colleague)
        await revoke(key)
        await until_known(caller)
        told = problem(await put(house, url, b"{}"), 403, "FORBIDDEN")
        assert "was revoked" in told["detail"]
        with_other = url.replace(key.split("_")[2], other.split("_")[2])
        assert with_other != url
        problem(await put(house, with_other, b"{}"), 403, "FORBIDDEN")
        assert (await put(house, theirs, b"{}")).status_code == 204


async def test_an_upload_on_its_way_ends_with_its_key(house: House, revoke: Revoke) -> None:
    _, key = house.new_tenant()
    async with house.caller(key) as caller:
        url = await new_url(caller)
    with begin_put(house, url, b"content-length: 1000", b"{") as opened:
        await flying(house, 1)
        await revoke(key)
        async with within_five_seconds():
            answer = await heard(opened)
    assert answer.startswith(b"HTTP/1.1 401")
    assert b"connection: close" in answer
    await flying(house, 0)
    upload = url.partition("/uploads/")[2].partition("?")[0]
    assert objects(house, f"uploads/*/*/{upload}/*") == []


async def test_a_download_on_its_way_ends_with_its_key(
    house: House, worker: HandWorker, revoke: Revoke
) -> None:
    """A tenant's, and a worker's: neither reads on what it had asked for."""
    _, tenant_key = house.new_tenant()
    worker_key = worker.client.headers["authorization"].removeprefix("Bearer ")
    path = await stored(house, tenant_key, worker.type)
    await worker.hello()
    lease = await worker.lease()
    at_worker = f"/v1/workers/w/payloads/{lease['job']}?tenant={lease['tenant']}"
    asked = {"payloads": (worker_key, at_worker), "downloads": (tenant_key, path)}
    for kind, (key, place) in asked.items():
        with deaf(house, key, place) as line:
            async with asyncio.timeout(20):
                while not (sending(house, kind) and unread(house)):  # noqa: ASYNC110  (nobody tells)
                    await asyncio.sleep(0.01)
            await revoke(key)
            async with within_five_seconds():
                # Also what waits to be read: else who reads slowly would go on reading.
                while sending(house, kind) or unread(house):  # noqa: ASYNC110  (nobody tells)
                    await asyncio.sleep(0.01)
            assert await asyncio.to_thread(read_to_the_end, line) < LARGE


def read_to_the_end(line: Any) -> int:
    size = 0
    try:
        while piece := line.recv(1 << 20):
            size += len(piece)
    except ConnectionResetError:
        pass
    return size


async def test_a_look_that_took_long_makes_no_job(house: House, revoke: Revoke) -> None:
    """The key was good when the job came, and is not when its upload has been looked at."""
    name, key = house.new_tenant()
    number, may_go_on = house.platform.directory.tenant_ids[name], threading.Event()

    async def hold_up(platform: Any) -> None:
        holding = platform.heavy.run(number + 1, partial(may_go_on.wait, 30.0))
        platform.held_up = asyncio.create_task(holding)

    async with house.caller(key) as caller, house.caller(key) as other:
        upload = await uploaded(house, caller, b"{}")
        house.inside(hold_up)
        try:
            job = {"type": "t", "payload_upload": upload}
            submitting = asyncio.create_task(caller.post("/v1/jobs", json=job))
            await asyncio.sleep(0.3)
            assert not submitting.done()
            await revoke(key)
            await until_known(other)
        finally:
            may_go_on.set()
        problem(await submitting, 401, "UNAUTHENTICATED")
    assert objects(house, f"payloads/*/{number}/*/payload") == []
