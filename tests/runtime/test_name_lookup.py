"""Names that strangers choose: looked up beside the loop, and nobody's hold up another's."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from fairway.runtime import name_lookup
from fairway.runtime.name_lookup import NameLookup


class Resolver:
    """The system's, with names that are answered when a test says so."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.go = threading.Event()
        self.twice = threading.Event()

    def __call__(self, name: str, port: None, **kinds: Any) -> list[Any]:
        self.asked.append(name)
        if len(self.asked) == 2:
            self.twice.set()
        if name.startswith("tarpit"):
            self.go.wait(60)
        return [(0, 0, 0, "", ("192.0.2.1", 0)), (0, 0, 0, "", ("192.0.2.1", 0))]


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Resolver]:
    resolver = Resolver()
    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    yield resolver
    resolver.go.set()


async def test_the_systems_own_resolver_answers() -> None:
    lookup = NameLookup()
    assert "127.0.0.1" in await lookup("localhost", 1)
    with pytest.raises(OSError):
        await lookup("nobody.invalid", 1)


async def test_what_is_known_is_answered_at_once(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    lookup = NameLookup()
    assert [await lookup("a", 1), await lookup("a", 2)] == [("192.0.2.1",)] * 2
    assert resolver.asked == ["a"]
    monkeypatch.setattr(name_lookup, "FRESH_SECONDS", 0.0)
    assert await lookup("a", 1) == ("192.0.2.1",)  # and somebody looks again
    assert await asyncio.to_thread(resolver.twice.wait, 30)
    assert resolver.asked == ["a", "a"]


async def test_names_that_are_never_answered_take_few_threads(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(name_lookup, "THREADS_MAX", 6)
    monkeypatch.setattr(name_lookup, "SLOW_THREADS_MAX", 1)
    monkeypatch.setattr(name_lookup, "SLOW_SECONDS", 0.0)
    lookup = NameLookup()
    hanging = [asyncio.create_task(_ended(lookup, f"tarpit{n}", 1)) for n in range(4)]
    done, _ = await asyncio.wait(hanging, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.sleep(0)
    assert sum(task.done() for task in hanging) == 2  # those of one owner that found no room
    assert [task.result() for task in done] == ["no room"] * len(done)
    assert await lookup("good", 2) == ("192.0.2.1",)
    resolver.go.set()
    assert [await task for task in hanging].count("found") == 2
    resolver.go.clear()
    first = asyncio.create_task(_ended(lookup, "tarpit8", 1))
    await asyncio.sleep(0)
    assert await _ended(lookup, "tarpit9", 1) == "no room"  # the slow ones share one thread
    assert await lookup("other", 3) == ("192.0.2.1",)
    resolver.go.set()
    assert await first == "found"


async def _ended(lookup: NameLookup, name: str, owner: int) -> str:
    try:
        await lookup(name, owner)
    except OSError:
        return "no room"
    return "found"
