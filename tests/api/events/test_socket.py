"""Events by WebSocket: many subscriptions on one line, and what becomes of rude clients."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator
from functools import partial

import httpx2
import pytest
from tests.api.events.socket_client import PATH, Closed, Rejected, SocketClient, socket_to
from tests.api.events.world import Talker, talker_in
from tests.api.house import House, problem
from tests.api.test_revocation import within_five_seconds
from wsproto.events import Message, Ping

from fairway.api.events.conversation import SUBSCRIPTIONS_MAX
from fairway.api.http.socket_protocol import MESSAGE_BYTES_MAX, SocketProtocol

SECONDS = 30.0


@pytest.fixture
async def talker(house: House) -> AsyncIterator[Talker]:
    async with talker_in(house) as talker:
        yield talker


async def test_subscriptions_share_a_line_each_with_its_filter(
    house: House, talker: Talker
) -> None:
    await talker.make(2)
    await talker.until(2)
    async with socket_to(house.port, talker.key) as socket:
        assert await socket.subscribe("all", after=0) == 0
        assert [one["position"] for one in await socket.hear_events(2, "all")] == [1, 2]
        assert await socket.subscribe("new") == 2
        assert await socket.subscribe("others", type="other.type", kind="job.*") == 2
        await talker.make(1)
        await talker.make(1, "other.type")
        heard = {"all": [], "new": [], "others": []}  # type: dict[str, list[int]]
        while heard != {"all": [3, 4], "new": [3, 4], "others": [4]}:
            said = await socket.hear()
            heard[said["subscription"]].append(said["event"]["position"])
        await socket.send(unsubscribe="all")
        assert await socket.hear() == {"subscription": "all", "unsubscribed_at": 4}
        await talker.make(1)
        assert (await socket.hear())["subscription"] == "new"


async def test_what_cannot_be_done_is_said_and_the_line_goes_on(
    house: House, talker: Talker
) -> None:
    async with socket_to(house.port, talker.key) as socket:
        for text, code, words in (
            ("{", "INVALID_JSON", ""),
            ("{}", "INVALID_REQUEST", "subscribe"),
            ('{"subscribe": "x", "after": -1}', "INVALID_REQUEST", ""),
            ('{"subscribe": "x", "after": 99}', "INVALID_CURSOR", "the newest is 0"),
            ('{"subscribe": "x", "kind": "job.deed"}', "INVALID_REQUEST", "job.dead"),
            ('{"subscribe": "x", "job": "y"}', "INVALID_REQUEST", "id of a job"),
            ('{"subscribe": "x", "colour": 1}', "INVALID_REQUEST", "colour"),
            ('{"unsubscribe": "x"}', "NOT_FOUND", "no subscription"),
        ):
            await socket.send_text(text)
            error = (await socket.hear())["error"]
            assert error["code"] == code, error
            assert words in error["detail"]
        for number in range(SUBSCRIPTIONS_MAX):
            await socket.subscribe(f"s{number}")
        await socket.send(subscribe="s0")
        assert (await socket.hear())["error"]["code"] == "CONFLICT"
        await socket.send(subscribe="more")
        said = await socket.hear()
        assert (said["subscription"], said["error"]["code"]) == ("more", "TOO_MANY_STREAMS")


async def test_browsers_show_their_key_in_other_ways(house: House, talker: Talker) -> None:
    offered = ["fairway.events", f"bearer.{talker.key}"]
    async with socket_to(house.port, subprotocols=offered) as socket:
        assert socket.subprotocol == "fairway.events"
        assert await socket.subscribe("x") == 0
    async with socket_to(house.port) as socket:
        await socket.send(authorize=talker.key)
        assert await socket.subscribe("x") == 0


async def test_without_a_good_key_nothing_is_told(house: House, talker: Talker) -> None:
    wrong = talker.key[:-1] + ("0" if talker.key[-1] != "0" else "1")
    with pytest.raises(Rejected) as refused:
        async with socket_to(house.port, wrong):
            pass
    assert (refused.value.status, refused.value.problem["code"]) == (401, "UNAUTHENTICATED")
    with pytest.raises(Rejected) as refused:
        async with socket_to(house.port, house.operator_key):
            pass
    assert (refused.value.status, refused.value.problem["code"]) == (403, "FORBIDDEN")
    for first in ('{"subscribe": "x"}', f'{{"authorize": "{wrong}"}}', "nonsense"):
        async with socket_to(house.port) as socket:
            await socket.send_text(first)
            assert (await socket.hear())["error"]["code"] == "UNAUTHENTICATED"
            with pytest.raises(Closed) as closed:
                await socket.hear()
            assert closed.value.code == 4401


async def test_plain_http_hears_that_this_is_a_socket(talker: Talker) -> None:
    async with talker.caller() as caller:
        reply = await caller.get(PATH)
        problem(reply, 426, "UPGRADE_REQUIRED")
        assert reply.headers["upgrade"] == "websocket"
        asked = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
        reply = await caller.get("/v1/jobs", headers=asked)  # left aside where there is none
        assert reply.status_code == 200
        reply = await caller.get(PATH, headers=asked)
        assert reply.status_code == 400  # no Sec-WebSocket-Key


async def test_a_socket_closes_with_its_key(
    house: House, talker: Talker, operator: httpx2.AsyncClient
) -> None:
    async with socket_to(house.port, talker.key) as socket:
        await socket.subscribe("x")
        gone = await operator.delete(f"/v1/keys/{talker.key.split('_')[2]}")
        assert gone.status_code == 204
        async with within_five_seconds():
            assert (await socket.hear())["error"]["code"] == "UNAUTHENTICATED"
            with pytest.raises(Closed) as closed:
                await socket.hear()
    assert closed.value.code == 4401


async def test_a_socket_takes_a_place_and_gives_it_back(house: House, talker: Talker) -> None:
    waiting = house.platform.waiting
    number = house.platform.directory.tenant_ids[talker.name]
    taken = waiting._taken["streams"]
    async with socket_to(house.port, talker.key) as socket:
        await socket.subscribe("x")
        assert taken[number] == 1
    await _until(lambda: taken[number] == 0)
    await _until(lambda: not house.platform.events.tails.follows(number))


async def test_too_long_a_message_closes_it(house: House, talker: Talker) -> None:
    async with socket_to(house.port, talker.key) as socket:
        await socket.send_text("x" * (MESSAGE_BYTES_MAX + 1))
        with pytest.raises(Closed) as closed:
            await socket.hear()
    assert closed.value.code == 1009


async def test_messages_sent_ahead_without_end_cut_it(house: House, talker: Talker) -> None:
    """What nobody heard yet would be kept for whoever sends it."""
    async with socket_to(house.port, talker.key) as socket:
        one = b"".join(socket.connection.send(Message(data="{}")) for _ in range(5_000))
        socket.writer.write(one)
        assert await _end_of(socket) == 1006


async def test_pings_of_a_client_that_does_not_read_gather_nothing(
    house: House, talker: Talker
) -> None:
    """Their answers would wait in memory, as many as it likes to send."""
    async with socket_to(house.port, talker.key) as socket:
        await socket.subscribe("x")
        (protocol,) = [
            one
            for one in gc.get_objects()
            if isinstance(one, SocketProtocol) and not one.transport.is_closing()
        ]

        async def tell(platform: object, word: str) -> None:
            getattr(protocol, word)()  # as the transport does

        house.inside(partial(tell, word="pause_writing"))
        pings = [socket.connection.send(Ping(payload=b"p" * 100)) for _ in range(50)]
        socket.writer.write(b"".join(pings))
        await socket.send(subscribe="y")
        await _until(lambda: bool(protocol.writable._waiters))  # its answer waits
        house.inside(partial(tell, word="resume_writing"))
        assert "subscribed_at" in await socket.hear()
        assert socket.pongs == 0
        socket.writer.write(socket.connection.send(Ping(payload=b"p")))
        await _until_heard(socket, 1)


async def _until_heard(socket: SocketClient, pongs: int) -> None:
    while socket.pongs < pongs:
        await socket.send(unsubscribe="z")
        await socket.hear()


async def test_an_upgrade_behind_a_request_under_way_cuts_the_line(
    house: House, talker: Talker
) -> None:
    """Its frames would stand in the midst of the other's answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", house.port)
    key = f"authorization: Bearer {talker.key}\r\n"
    waits = f"GET /v1/events?after=0&wait=20 HTTP/1.1\r\nhost: x\r\n{key}\r\n"
    upgrade = (
        f"GET {PATH} HTTP/1.1\r\nhost: x\r\n{key}connection: upgrade\r\nupgrade: websocket\r\n"
        "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    writer.write((waits + upgrade).encode())
    async with asyncio.timeout(SECONDS):
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read(1000) == b""
    writer.transport.abort()


async def _end_of(socket: SocketClient) -> int:
    try:
        while True:
            await socket.hear()
    except Closed as closed:
        return closed.code


async def _until(is_so: object) -> None:
    assert callable(is_so)
    async with asyncio.timeout(SECONDS):
        while not is_so():  # noqa: ASYNC110  (nobody tells)
            await asyncio.sleep(0.01)
