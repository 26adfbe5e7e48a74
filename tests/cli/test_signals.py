"""The same signal once more means: hurry; a third time: at once. An echo of one means nothing."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest
from tests.acceptance.processes import until

from fairway.cli.processes import signals
from fairway.runtime.told_to_end import ENDING


@pytest.fixture(autouse=True)
def heeds_its_terminal() -> Iterator[None]:
    """Whoever runs these tests may have been started with nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


async def heard_of(*numbers: signal.Signals) -> list[str]:
    heard: list[str] = []
    orders = ("stop", "hurry", "quit")
    signals.stop_on_signals(*(lambda order=order: heard.append(order) for order in orders))
    try:
        for number in numbers:
            before = len(heard)
            os.kill(os.getpid(), number)
            await until(lambda before=before: len(heard) > before, 20, number.name)
    finally:
        for number in ENDING:
            asyncio.get_running_loop().remove_signal_handler(number)
    return heard


async def test_twice_the_same_is_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "ECHO_SECONDS", 0.0)
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGTERM, signal.SIGINT)
    assert await heard_of(*numbers) == ["stop", "stop", "hurry", "hurry"]


async def test_the_third_time_it_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "ECHO_SECONDS", 0.0)
    numbers = (signal.SIGHUP, signal.SIGQUIT, signal.SIGQUIT, signal.SIGQUIT, signal.SIGQUIT)
    assert await heard_of(*numbers) == ["stop", "stop", "hurry", "quit", "quit"]


async def test_who_was_started_with_nohup_outlives_its_terminal() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert await heard_of(signal.SIGTERM) == ["stop"]
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


async def test_an_echo_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "ECHO_SECONDS", 600.0)
    assert await heard_of(signal.SIGTERM, signal.SIGTERM) == ["stop", "stop"]
