"""Lines that break at any moment: no event is missed, and none comes twice, before the cursor."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from tests.api.events.socket_client import Closed, Rejected, socket_to
from tests.api.events.world import Line, Talker, line_to, talker_in
from tests.api.house import House

from fairway import App, Event

EVENTS, CUTS = 400, 12
SECONDS = 60.0


@pytest.fixture
async def talker(house: House) -> AsyncIterator[Talker]:
    async with talker_in(house) as talker:
        yield talker


class Cutter:
    """Cuts the line when so many events have come: in the midst of the next, as often as not."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._due = sorted(random.Random(1).sample(range(1, EVENTS), CUTS))

    def look(self, found: list[int]) -> None:
        if self._due and len(found) >= self._due[0]:
            del self._due[0]
            self._line.cut()


async def make_all(talker: Talker) -> None:
    """In small parts, so that some are always on their way."""
    for _ in range(EVENTS // 20):
        await talker.make(20)


async def read_by_stream(line: Line, talker: Talker) -> list[int]:
    """As the SDK does, which comes back by itself."""
    app, cutter = App("reader", url=line.url, api_key=talker.key, patience="30s"), Cutter(line)
    found: list[int] = []
    items = app.aevents(after=0, kind="job.accepted")
    while len(found) < EVENTS:
        item = await anext(items)
        assert isinstance(item, Event), item
        found.append(item.position)
        cutter.look(found)
    await app.aclose()
    return found


async def read_by_socket(line: Line, talker: Talker) -> list[int]:
    found: list[int] = []
    cutter = Cutter(line)
    while len(found) < EVENTS:
        try:
            async with socket_to(line.port, talker.key) as socket:
                await socket.subscribe("x", after=found[-1] if found else 0)
                while len(found) < EVENTS:
                    (event,) = await socket.hear_events(1)
                    found.append(event["position"])
                    cutter.look(found)
        except (Closed, Rejected, OSError):
            continue
    return found


@pytest.mark.parametrize("read", [read_by_stream, read_by_socket], ids=["stream", "socket"])
async def test_nothing_is_missed_and_nothing_comes_twice(
    house: House, talker: Talker, read: Callable[[Line, Talker], Awaitable[list[int]]]
) -> None:
    async with line_to(house.port) as line, asyncio.timeout(SECONDS):
        making = asyncio.create_task(make_all(talker))
        found = await read(line, talker)
        await making
        assert found == [*range(1, EVENTS + 1)]
        assert line.cuts > CUTS / 2, "few lines were cut: the test proved little"
