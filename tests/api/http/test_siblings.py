"""Connections between two servers that are processes of one: real sockets, both in this loop."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvloop
from tests.acceptance.processes import until

from fairway.api.http.asgi import CONNECTION, read_body, send_whole
from fairway.api.http.gate import ConnectionGate, GateLimits
from fairway.api.http.siblings import Handed, Siblings
from fairway.cli.processes.http import HttpServer
from fairway.cli.processes.listening import Listeners, listen_at
from fairway.cli.processes.sibling_files import SiblingChannels
from fairway.core.backpressure.connections import ConnectionLimits
from fairway.core.ids import TenantId
from fairway.core.ownership.connection_moves import PASSED_ON_MIN, ProcessLoad
from fairway.core.server_processes import ProcessGroup, SiblingFiles
from fairway.runtime.telemetry import Metrics

TENANT = TenantId(7)
OWNER = 2
BODY_BYTES_MAX = 1 << 20


class Process:
    """Answers with its number and what it was sent; all that it is asked belongs to OWNER."""

    def __init__(self, number: int, channels: SiblingChannels, connections_max: int) -> None:
        self._listener = listen_at("127.0.0.1", 0, "--port")
        self.port: int = self._listener.getsockname()[1]
        own = _copies(channels.files_of(number))
        self._group = ProcessGroup("two", number, 0, ("http://one", "http://two"), (), own)
        limits = GateLimits(ConnectionLimits(connections_max, 100), 20.0, 1 << 20)
        self.gate = ConnectionGate(limits, Metrics(), Siblings(self._group))
        self._http = HttpServer(self, self.gate, 20.0)
        self._stopping = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = await read_body(scope, receive, BODY_BYTES_MAX)
        connection = scope[CONNECTION]
        if not connection.is_known:
            connection.proved(TENANT)
        if self._group.number != OWNER:
            connection.passed_on(TENANT, OWNER, owns_nothing=False)
        await asyncio.sleep(0)
        await send_whole(scope, send, 200, b"%d %b" % (self._group.number, body))

    async def start(self) -> None:
        listeners = Listeners(self._listener.dup(), None, self._group)
        self._running = asyncio.create_task(
            self._http.run_until(self._stopping, listeners, _nothing)
        )
        await until(lambda: self._http.started, 10, "it is started")

    async def stop(self) -> None:
        self._stopping.set()
        assert self._running is not None
        await self._running
        self._listener.close()


def _copies(files: SiblingFiles) -> SiblingFiles:
    """As a process has them: its parent's stay open."""
    taken_fd, *handed_fds = (socket.dup(one) for one in (files.taken_fd, *files.handed_fds))
    return SiblingFiles(socket.dup(files.pids_fd), taken_fd, tuple(handed_fds))


async def _nothing() -> None:
    return None


@asynccontextmanager
async def two(connections_max: int = 1000) -> AsyncIterator[tuple[Process, Process]]:
    channels = SiblingChannels(2)
    first, second = (Process(number, channels, connections_max) for number in (1, 2))
    await first.start()
    await second.start()
    try:
        yield first, second
    finally:
        await asyncio.gather(first.stop(), second.stop())
        channels.close()


def request(body: bytes) -> bytes:
    head = b"POST /jobs HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    return head + b"content-length: %d\r\n\r\n" % len(body) + body


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length"))
    told = await reader.readexactly(int(length.partition(b":")[2]))
    number, _, body = told.partition(b" ")
    return int(number), body


async def asked(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes = b"{}"
) -> int:
    writer.write(request(body))
    number, told = await answer(reader)
    assert told == body
    await asyncio.sleep(0.01)  # for it to go
    return number


async def one_by_one() -> None:
    async with two() as (first, second):
        client = await asyncio.open_connection("127.0.0.1", first.port)
        answered = [await asked(*client) for _ in range(PASSED_ON_MIN + 3)]
        assert answered == [1] * PASSED_ON_MIN + [2] * 3
        assert (len(first.gate.book), len(second.gate.book)) == (0, 1)
        client[1].close()
        await asyncio.sleep(0.02)
        assert len(second.gate.book) == 0


def test_a_connection_goes_to_the_owner_of_what_is_sent_on_it() -> None:
    uvloop.run(one_by_one())


async def until_it_is_full() -> None:
    """Seven tenths of what it may have: there is room for those that come to it by themselves."""
    async with two(connections_max=20) as (first, second):
        own = [await asyncio.open_connection("127.0.0.1", second.port) for _ in range(14)]
        await until(lambda: len(second.gate.book) == 14, 10, "they are there")
        await second.gate.run_once(0)
        client = await asyncio.open_connection("127.0.0.1", first.port)
        assert {await asked(*client) for _ in range(PASSED_ON_MIN + 2)} == {1}
        for _, writer in own:
            writer.close()
        await until(lambda: len(second.gate.book) == 0, 10, "they have gone")
        assert second.gate.siblings is not None
        second.gate.siblings.tell(ProcessLoad(0, 1000))
        assert await asked(*client) == 1, "who is behind is handed nothing, either"
        await second.gate.run_once(0)
        second.gate.siblings.tell(ProcessLoad(0, 0))
        await asked(*client)
        assert await asked(*client) == 2
        client[1].close()


def test_a_process_is_handed_no_more_than_leaves_room_for_others() -> None:
    uvloop.run(until_it_is_full())


async def in_pieces() -> None:
    """Whatever is half read when it could go: all of it is answered once, in its order."""
    dice, answered_by = random.Random(3), set[int]()

    async def produce(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        bodies = [b"%d" % n + b"x" * dice.choice((1, 50, 90_000) if n else (1,)) for n in range(24)]
        rest, sent = b"".join(map(request, bodies)), 0
        ends = [sum(len(request(body)) for body in bodies[: n + 1]) for n in range(24)]
        for place, body in enumerate(bodies):
            while sent < ends[place]:  # and often a part of what follows
                ahead = ends[min(place + 4, 23)] if place else ends[1]  # what may be sent unheard
                size = min(dice.choice((20, 120, 150, 150, 400, 60_000)), ahead - sent)
                writer.write(rest[:size])
                rest, sent = rest[size:], sent + size
                await asyncio.sleep(dice.choice((0, 0, 0.001, 0.003)))
            number, told = await asyncio.wait_for(answer(reader), 20)
            assert told == body
            answered_by.add(number)
        writer.close()

    async with two() as (first, _):
        await asyncio.gather(*(produce(first.port) for _ in range(12)))
    assert answered_by == {1, 2}


def test_pipelines_and_halves_of_requests_are_answered_once_and_in_order() -> None:
    uvloop.run(in_pieces())


async def without_room() -> None:
    """One tenant holds a fourth of four: the owner has one of it, and gives the second back."""
    async with two(connections_max=4) as (first, second):
        there = await asyncio.open_connection("127.0.0.1", second.port)
        assert await asked(*there) == 2
        client = await asyncio.open_connection("127.0.0.1", first.port)
        answered = [await asked(*client) for _ in range(PASSED_ON_MIN * 3)]
        assert set(answered) == {1}, "it was sent back, and is not sent again at once"
        assert (len(first.gate.book), len(second.gate.book)) == (1, 1)
        assert first.gate.book.holder_of(*first.gate.book._holders) == TENANT
        there[1].close()
        client[1].close()


def test_an_owner_without_room_sends_it_back() -> None:
    uvloop.run(without_room())


def both(channels: SiblingChannels) -> tuple[Siblings, Siblings]:
    files = [channels.files_of(number) for number in (1, 2)]
    urls = ("http://one", "http://two")
    first, second = (
        Siblings(ProcessGroup("two", number, 0, urls, (), _copies(own)))
        for number, own in enumerate(files, 1)
    )
    return first, second


async def handed_to_one_that_hangs() -> int:
    channels, taken = SiblingChannels(2), list[Handed]()
    first, second = both(channels)
    first.begin(lambda carried, facts: None)
    second.begin(lambda carried, facts: taken.append(facts))
    facts, carried = Handed(TENANT, 1, 1, is_back=False), socket.socket()
    count = 0
    while count < 100 and first.hand(OWNER, carried.fileno(), facts):
        count += 1
    await until(lambda: len(taken) == count, 10, "it goes on, and takes all that waits")
    assert first.hand(OWNER, carried.fileno(), facts)
    first.close()
    second.close()
    channels.close()
    carried.close()
    return count


def test_few_wait_for_a_process_that_hangs() -> None:
    assert 4 <= uvloop.run(handed_to_one_that_hangs()) <= 20


async def handed_to_one_that_closed() -> bool:
    """As one does that fails before it has started: it goes on for a while, and takes nothing."""
    channels = SiblingChannels(2)
    first, second = both(channels)
    second.begin(lambda carried, facts: None)
    second.close()
    with socket.socket() as carried:
        is_handed = first.hand(OWNER, carried.fileno(), Handed(TENANT, 1, 1, is_back=False))
    first.close()
    channels.close()
    return is_handed


def test_nothing_is_handed_to_a_process_that_takes_no_more() -> None:
    assert not uvloop.run(handed_to_one_that_closed())


async def while_the_owner_ends() -> None:
    channels = SiblingChannels(2)
    first, second = Process(1, channels, 1000), Process(OWNER, channels, 1000)
    await first.start()
    await second.start()
    client = await asyncio.open_connection("127.0.0.1", first.port)
    await second.stop()
    assert {await asked(*client) for _ in range(PASSED_ON_MIN * 2)} == {1}, "nobody takes it there"
    again = Process(OWNER, channels, 1000)
    await again.start()
    assert (await asked(*client), await asked(*client)) == (1, 2)
    client[1].close()
    await asyncio.gather(first.stop(), again.stop())
    channels.close()


def test_nothing_is_handed_to_a_process_that_ends_and_its_next_life_takes_again() -> None:
    uvloop.run(while_the_owner_ends())
