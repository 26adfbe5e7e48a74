"""A line to an owner: many calls on one connection, and what is known when it breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from tests.api.house import House, open_house, problem
from tests.services.platform_room import until

from fairway.api.http.frames import FRAME_BYTES_MAX, HEAD, Frame, FrameReader, frame_text
from fairway.api.http.line_protocol import SWITCHING
from fairway.api.owner_line import LINE_PATH, Lines, OwnerConnection, open_line
from fairway.api.passed_jobs import OwnerJobs, decode_reply, encode
from fairway.api.peers import cluster_lines
from fairway.core.ids import JobId
from fairway.runtime.plain_http import Reply

SECRET = "x-fairway-cluster: of us all\r\n"
Meet = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def owner(meet: Meet) -> AsyncIterator[str]:
    async def greeted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert SECRET.encode() in head
        await meet(reader, writer)

    server = await asyncio.start_server(greeted, "127.0.0.1", 0)
    try:
        host, port = server.sockets[0].getsockname()
        yield f"http://{host}:{port}"
    finally:
        server.close()


async def asked(line: OwnerConnection, body: bytes) -> Reply:
    return await asyncio.wait_for(line.send(body)[1], 5)


async def test_answers_find_their_calls_in_any_order() -> None:
    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(SWITCHING)
        frames, calls = FrameReader(), list[Frame]()
        while len(calls) < 3:
            calls += frames.feed(await reader.read(1000))
        told = [Frame(one.number, 200, one.body.upper()) for one in reversed(calls)]
        writer.writelines(map(frame_text, told))

    async with owner(meet) as url:
        line = await open_line(url, SECRET, 5)
        replies = await asyncio.gather(*(asked(line, body) for body in (b"a", b"b", b"c")))
        assert [reply.body for reply in replies] == [b"A", b"B", b"C"]
        line.close()


async def test_an_answer_may_be_larger_than_a_call() -> None:
    """One refusal for each of very many small jobs: it must not break the line for others."""
    answer = bytes(4 * FRAME_BYTES_MAX)

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(SWITCHING)
        await reader.read(1000)
        writer.write(frame_text(Frame(1, 200, answer)))

    async with owner(meet) as url:
        line = await open_line(url, SECRET, 5)
        assert (await asked(line, b"many")).body == answer
        line.close()


async def test_a_line_that_breaks_fails_what_is_under_way_and_carries_no_more() -> None:
    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(SWITCHING)
        await reader.read(1000)
        writer.transport.abort()

    async with owner(meet) as url:
        lines = Lines()
        line = await lines.to(url, SECRET, 5)
        assert line is not None
        assert lines.ready(url) is line
        with pytest.raises(ConnectionError):
            await asked(line, b"lost")
        assert lines.ready(url) is None


async def test_a_line_that_ends_as_it_begins_is_sent_no_call() -> None:
    """It would neither be answered nor heard to be lost: its callers waited as long as they may."""

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(SWITCHING)
        writer.close()

    async with owner(meet) as url:
        line = await open_line(url, SECRET, 5)
        await until(lambda: not line.is_fresh)
        assert not line.has_room


async def test_after_an_answer_that_did_not_come_in_time_another_line_is_opened() -> None:
    goes_on = asyncio.Event()

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(SWITCHING)
        frames, calls = FrameReader(), list[Frame]()
        while len(calls) < 2:
            calls += frames.feed(await reader.read(1000))
        await goes_on.wait()
        writer.writelines(frame_text(Frame(one.number, 200, one.body)) for one in calls)

    async with owner(meet) as url:
        lines = Lines()
        line = await lines.to(url, SECRET, 5)
        assert line is not None
        number, _ = line.send(b"slow")
        other = line.send(b"other")[1]
        line.give_up(number)
        assert lines.ready(url) is None
        goes_on.set()
        assert (await asyncio.wait_for(other, 5)).body == b"other", "what was under way goes on"


@pytest.mark.parametrize("answer", [b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", b""])
async def test_where_only_http_is_spoken_requests_are_the_way(answer: bytes) -> None:
    met = 0

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal met
        met += 1
        writer.write(answer)
        writer.close()

    async with owner(meet) as url:
        lines = Lines()
        assert await lines.to(url, SECRET, 5) is None
        assert await lines.to(url, SECRET, 5) is None
        assert met == 1, "it is left in peace for a while"


async def test_a_server_answers_each_call_of_a_line_and_closes_one_that_is_not_sane(
    house: House,
) -> None:
    _, key = house.new_tenant()
    async with house.caller(key) as tenant:
        problem(await tenant.post(LINE_PATH, content=b""), 404, "NOT_FOUND")
    lines = cluster_lines(house.platform.cluster.secret)
    line = await open_line(house.url, lines, 5)
    tenants = house.platform.directory.tenants
    calls = [OwnerJobs(one, 1, False, 0, JobId(""), None, ()) for one in list(tenants)[:3]]
    good, bad, last = await asyncio.gather(
        asked(line, encode(calls)), asked(line, b"what?"), asked(line, encode(calls[:1]))
    )
    assert [good.status, bad.status, last.status] == [200, 422, 200]
    assert decode_reply(good.body).items == [None] * len(calls)
    line._transport.write(HEAD.pack(FRAME_BYTES_MAX + 1, 9, 0))
    with pytest.raises(ConnectionError):
        await asked(line, encode(calls))
    assert not line.is_fresh


async def test_a_server_that_stops_answers_what_is_under_way_and_ends_its_lines(
    house: House,
) -> None:
    with open_house(house.dsn, owns_shards=False) as second:
        line = await open_line(second.url, cluster_lines(second.platform.cluster.secret), 5)
        assert (await asked(line, encode([]))).status == 200
    await asyncio.sleep(0.05)
    assert not line.is_fresh
