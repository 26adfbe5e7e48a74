"""Large bodies take room before they are read, and give it back however their request ends."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx2
import pytest
from tests.api.house import NO_TLS, House, own_house, problem
from tests.api.worker import HandWorker
from tests.postgres import Server

from fairway.core.ids import TenantId
from fairway.services.backpressure.body_memory import SMALL_BYTES

MB = 1 << 20
ROOM = 32 * MB  # 16 for requests, of one tenant 4; 8 for tenants' workers, 8 for shared ones
PART = ROOM // 8
UNREAD = MB
LARGE = 3 * MB
PATIENCE_SECONDS = 20.0  # for a busy machine


@pytest.fixture(scope="module")
def narrow(postgres_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A server with little room for bodies."""
    with own_house(
        postgres_server,
        "body_room_tests",
        storage_url=f"file://{tmp_path_factory.mktemp('objects')}",
        body_room_bytes_max=ROOM,
        unread_bytes_max=UNREAD,
    ) as house:
        yield house


@pytest.fixture(autouse=True)
def all_is_given_back(narrow: House) -> Iterator[None]:
    yield
    until_held(narrow, 0)


@pytest.fixture
async def hand(narrow: House) -> AsyncIterator[HandWorker]:
    async with narrow.caller(narrow.new_key({"scope": "worker"})) as client:
        worker = HandWorker(client)
        yield worker
        await worker.leave()


def held(house: House) -> int:
    rooms = house.platform.bodies
    kinds = (rooms.requests, rooms.checkpoints, rooms.of_worker(TenantId(1), "")[0])
    return sum(room.bytes_held for room in (*kinds, rooms.of_worker(None, "")[0]))


def until_held(house: House, size_bytes: int) -> None:
    until(lambda: held(house) == size_bytes, f"{size_bytes} bytes are held")


def head(path: str, key: str, *lines: str) -> bytes:
    fixed = (f"POST {path} HTTP/1.1", "host: x", f"authorization: Bearer {key}")
    return "\r\n".join([*fixed, "content-type: application/json", *lines, "", ""]).encode()


@contextmanager
def half_sent(
    house: House, size_bytes: int, key: str = "", path: str = "/v1/jobs/batch"
) -> Iterator[socket.socket]:
    """A body of so many bytes whose end does not come; of a tenant of its own, or of this key."""
    key = key or house.new_tenant()[1]
    with socket.create_connection(("127.0.0.1", house.port), PATIENCE_SECONDS) as line:
        before = held(house)
        line.sendall(head(path, key, f"content-length: {size_bytes}") + b'{"jobs":')
        until_held(house, before + size_bytes)
        yield line


@contextmanager
def full(house: House) -> Iterator[None]:
    """All the room for requests is taken, but for less than the smallest body that is counted."""
    with ExitStack() as stack:
        for size_bytes in (4 * MB, 4 * MB, 4 * MB, MB, MB, MB, MB - (32 << 10)):
            stack.enter_context(half_sent(house, size_bytes))
        yield


def job(size_bytes: int) -> dict[str, Any]:
    return {"type": "t", "payload": {"text": "x" * size_bytes}}


async def test_a_tenant_has_a_part_and_others_have_theirs(narrow: House) -> None:
    _, key = narrow.new_tenant()
    _, other = narrow.new_tenant()
    async with narrow.caller(key) as tenant, narrow.caller(other) as neighbour:
        with half_sent(narrow, PART - MB, key):
            told = problem(await tenant.post("/v1/jobs", json=job(MB)), 429, "TOO_MANY_BYTES")
            assert f"{PART} at a time" in told["detail"]
            assert (await tenant.post("/v1/jobs", json=job(SMALL_BYTES - 100))).status_code == 202
            assert (await neighbour.post("/v1/jobs", json=job(MB))).status_code == 202
        until_held(narrow, 0)
        assert (await tenant.post("/v1/jobs", json=job(MB))).status_code == 202


async def test_without_room_small_bodies_and_reports_still_pass(
    narrow: House, hand: HandWorker
) -> None:
    _, key = narrow.new_tenant()
    async with narrow.caller(key) as tenant:
        await hand.hello(slots=1)
        assert (await tenant.post("/v1/jobs", json={"type": hand.type})).status_code == 202
        lease = await hand.lease()
        with full(narrow):
            told = problem(await tenant.post("/v1/jobs", json=job(2 * MB)), 503, "NO_ROOM")
            assert "send it again" in told["detail"]
            problem(await tenant.post("/v1/jobs", json=job(SMALL_BYTES)), 503, "NO_ROOM")
            assert (await tenant.post("/v1/jobs", json=job(SMALL_BYTES - 100))).status_code == 202
            await hand.tell(hand.report(lease, result={"text": "x" * MB}))


def test_who_finds_no_room_hears_it_before_it_sends(narrow: House) -> None:
    """The head alone is answered; so nothing of the body can be in memory."""
    _, key = narrow.new_tenant()
    with (
        half_sent(narrow, PART - MB, key),
        socket.create_connection(("127.0.0.1", narrow.port), PATIENCE_SECONDS) as line,
    ):
        line.sendall(head("/v1/jobs", key, f"content-length: {2 * MB}"))
        reply = line.recv(1 << 16)
        assert reply.startswith(b"HTTP/1.1 429 ")
        assert b"retry-after: 2\r\n" in reply
        line.sendall(b"x" * 2 * MB)  # what it sends all the same is thrown away
        line.sendall(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n")
        assert line.recv(1 << 16).startswith(b"HTTP/1.1 200 ")


def test_a_body_in_chunks_counts_as_the_longest_until_its_length_is_known(narrow: House) -> None:
    _, key = narrow.new_tenant()
    body = json.dumps(job(100 << 10)).encode()
    with socket.create_connection(("127.0.0.1", narrow.port), PATIENCE_SECONDS) as line:
        chunk = b"%x\r\n%b\r\n" % (len(body), body)
        line.sendall(head("/v1/jobs", key, "transfer-encoding: chunked") + chunk)
        settings = narrow.platform.settings
        until_held(narrow, settings.payload_bytes_max + (8 << 10))
        line.sendall(b"0\r\n\r\n")
        assert line.recv(1 << 16).startswith(b"HTTP/1.1 202 ")


def test_a_small_body_in_chunks_is_not_counted(narrow: House) -> None:
    _, key = narrow.new_tenant()
    body = json.dumps(job(50 << 10)).encode()
    with (
        full(narrow),
        socket.create_connection(("127.0.0.1", narrow.port), PATIENCE_SECONDS) as line,
    ):
        opening = head("/v1/jobs", key, "transfer-encoding: chunked")
        line.sendall(opening + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
        assert line.recv(1 << 16).startswith(b"HTTP/1.1 202 ")


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/jobs", json.dumps(job(MB)).encode(), 202),
        ("/v1/jobs/batch", json.dumps({"jobs": [job(MB)]}).encode(), 200),
        ("/v1/jobs", b"x" * MB, 400),
        ("/v1/jobs", b'{"type":"t","payload":[%b]}' % (b'"x",' * 50_000 + b"1"), 422),
        ("/v1/jobs", b'{"type":"t","payload":{"x":[%b1]}}' % (b"1," * 200_000), 413),
        ("/v1/schedule-preview", json.dumps(job(SMALL_BYTES + 5000)).encode(), 413),
    ],
)
async def test_room_is_given_back_whatever_the_answer(
    narrow: House, path: str, body: bytes, status: int
) -> None:
    _, key = narrow.new_tenant()
    async with narrow.caller(key) as tenant:
        assert (await tenant.post(path, content=body)).status_code == status


async def test_a_held_call_has_no_room(narrow: House, hand: HandWorker) -> None:
    """Nothing of its body is kept, so others may have that room."""
    await hand.hello(slots=1)
    asked = hand.post(wait_ms=5000, note="x" * MB)
    waiting = asyncio.create_task(asked)
    session = hand.session
    await asyncio.to_thread(until_called, narrow, session)
    assert held(narrow) == 0
    assert not waiting.done()
    await hand.say(hello={"types": [], "slots": {}}, running=[])  # which ends the older call
    assert (await waiting).status_code == 200


def until_called(house: House, session: str) -> None:
    """A call of this session is held open."""
    sessions = house.platform.dispatcher.sessions
    until(lambda: sessions[session].poll is not None, "the call is held")


async def test_a_submission_that_waits_for_its_result_has_no_room(narrow: House) -> None:
    _, key = narrow.new_tenant()
    async with narrow.caller(key) as tenant:
        prefer = {"prefer": "wait=5"}
        waiting = asyncio.create_task(tenant.post("/v1/jobs", json=job(MB), headers=prefer))
        await asyncio.to_thread(until_waits, narrow, 1)
        assert held(narrow) == 0
        waiting.cancel()


def until_waits(house: House, count: int) -> None:
    find, name = house.platform.metrics.registry.get_sample_value, "fairway_requests_waiting"
    until(lambda: find(name, {"kind": "waits"}) == count, "it waits")


async def test_a_client_that_goes_away_leaves_no_room_behind(narrow: House) -> None:
    with half_sent(narrow, 2 * MB) as line:
        line.shutdown(socket.SHUT_RDWR)
        await asyncio.to_thread(until_held, narrow, 0)


async def test_many_large_calls_of_workers_at_once(narrow: House) -> None:
    """Of calls of 3 MB at once some are heard, the others come again; as many bytes as may be."""
    key = narrow.new_key({"scope": "worker"})
    body = b'{"session":"%b","reports":[],"note":"%b"}' % (b"1" * 32, b"x" * 3 * MB)
    most = 0

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, held(narrow))
            await asyncio.sleep(0.001)

    async with narrow.caller(key) as client:
        watching = asyncio.create_task(watch())
        posts = (client.post(f"/v1/workers/w{n}/exchange", content=body) for n in range(12))
        replies = await asyncio.gather(*posts)
        watching.cancel()
    codes = sorted(reply.status_code for reply in replies)
    assert set(codes) == {200, 503}
    assert most <= ROOM // 4
    for reply in replies:
        if reply.status_code == 503:
            problem(reply, 503, "NO_ROOM")


# -- replies that nobody reads -------------------------------------------------------------------


@contextmanager
def deaf(house: House, key: str, path: str) -> Iterator[socket.socket]:
    """Asks, and does not read the answer."""
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.settimeout(PATIENCE_SECONDS)
        line.connect(("127.0.0.1", house.port))
        lines = (f"GET {path} HTTP/1.1", "host: x", f"authorization: Bearer {key}")
        line.sendall("\r\n".join([*lines, "connection: close", "", ""]).encode())
        yield line


def unread(house: House) -> float:
    return house.platform.metrics.registry.get_sample_value("fairway_unread_bytes") or 0.0


def test_of_replies_that_nobody_reads_the_heaviest_holder_loses_its_own(narrow: House) -> None:
    greedy, modest = narrow.new_tenant()[1], narrow.new_tenant()[1]
    with ExitStack() as stack:
        mine = large_payload(narrow, modest)
        one = stack.enter_context(deaf(narrow, modest, mine))
        until(lambda: unread(narrow) > 0, "the modest one has an answer")
        path = large_payload(narrow, greedy)
        cut = narrow.platform.metrics.connections_refused.labels("unread")
        before = cut._value.get()
        for _ in range(24):
            stack.enter_context(deaf(narrow, greedy, path))
        until(lambda: cut._value.get() > before, "some are cut")
        assert unread(narrow) <= UNREAD
        size = 0
        while part := one.recv(1 << 20):
            size += len(part)
        assert size > LARGE


def large_payload(house: House, key: str) -> str:
    with httpx2.Client(base_url=house.url, trust_env=False, verify=NO_TLS) as client:
        headers = {"authorization": f"Bearer {key}"}
        reply = client.post("/v1/jobs", json=job(LARGE), headers=headers)
    assert reply.status_code == 202, reply.text
    return f"/v1/jobs/{reply.json()['id']}/payload"


def until(condition: Callable[[], bool], what: str) -> None:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < PATIENCE_SECONDS, what
        time.sleep(0.01)
