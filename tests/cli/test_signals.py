"""The same signal once more means: at once. An echo of the first does not."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest
from tests.acceptance.processes import until

from fairway.cli.processes import signals


async def heard_of(*numbers: signal.Signals) -> list[str]:
    heard: list[str] = []
    signals.stop_on_signals(lambda: heard.append("stop"), lambda: heard.append("hurry"))
    try:
        for number in numbers:
            before = len(heard)
            os.kill(os.getpid(), number)
            await until(lambda before=before: len(heard) > before, 60, number.name)
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().remove_signal_handler(number)
    return heard


async def test_twice_the_same_is_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "ECHO_SECONDS", 0.0)
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGTERM, signal.SIGINT)
    assert await heard_of(*numbers) == ["stop", "stop", "hurry", "hurry"]


async def test_an_echo_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "ECHO_SECONDS", 600.0)
    assert await heard_of(signal.SIGTERM, signal.SIGTERM) == ["stop", "stop"]
