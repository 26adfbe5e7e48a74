"""The Python block of `docs/EVENTS.md` runs as written, but for the position it begins at."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.api.events.world import Talker, talker_in
from tests.api.house import House

import fairway
from fairway import App

PAGE = Path(__file__).parents[3] / "docs/EVENTS.md"
(BLOCK,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


class EnoughSeen(Exception):
    """The block never ends by itself."""


@pytest.fixture
async def talker(house: House) -> AsyncIterator[Talker]:
    async with talker_in(house) as talker:
        yield talker


async def test_the_block_hears_of_each_event(house: House, talker: Talker) -> None:
    app = App("reader", url=house.url, api_key=talker.key)
    await talker.make(3)
    handled: list[Any] = []
    remembered: list[int] = []

    def remember(position: int) -> None:
        remembered.append(position)
        if len(remembered) == 3:
            raise EnoughSeen

    given = {"app": app, "fairway": fairway, "handle": handled.append, "remember": remember}
    code = compile(BLOCK.replace("after=4712", "after=0"), "EVENTS.md", "exec")
    with pytest.raises(EnoughSeen):
        await asyncio.to_thread(exec, code, given)
    assert [one.position for one in handled] == remembered == [1, 2, 3]
    assert {one.kind for one in handled} == {"job.accepted"}
