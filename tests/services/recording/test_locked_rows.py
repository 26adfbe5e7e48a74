"""Rows that somebody holds: waited for by a stop, until it gives them up."""

from __future__ import annotations

import asyncio

import pytest

from fairway.services.recording.locked_rows import LockedRows


async def test_who_gives_up_waiting_lets_them_go() -> None:
    """They would hold connections, and a stop would wait for those once more."""
    locked, gone = LockedRows("ends"), list[str]()

    async def write() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            gone.append("let go")

    await locked.take(3, write)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await locked.drain()
    await asyncio.wait_for(locked.drain(), 10)
    assert gone == ["let go"]
