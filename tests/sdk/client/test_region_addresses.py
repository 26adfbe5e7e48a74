"""Addresses of several regions: on with the next when one is away, back when it answers again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sdk.tiny_server import API_KEY, Reply, TinyServer, problem

from fairway import App
from fairway.cli.processes.work import checked_urls as workers_urls
from fairway.core.errors import InvalidRequest
from fairway.sdk.http import addresses as module
from fairway.sdk.http.addresses import (
    LOOK_APART_SECONDS_MAX,
    LOOK_FIRST_SECONDS,
    LOOK_SECONDS,
    Addresses,
    checked_regions,
    text_of,
)
from fairway.sdk.http.settings import find_settings

NEAR, FAR = ("http://near-1", "http://near-2"), ("http://far-1", "http://far-2")
BOTH = text_of((NEAR, FAR))
AWAY = Reply(503, problem("UNAVAILABLE", 503, "Not now."))


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def far() -> Iterator[TinyServer]:
    server = TinyServer()
    server.start()
    yield server
    server.stop()


def test_regions_stand_between_semicolons() -> None:
    assert checked_regions(" http://a/ ,http://b;; http://c,http://a;,") == (
        ("http://a", "http://b"),
        ("http://c",),
    )
    assert find_settings(url="http://a;http://b,http://a").url == "http://a;http://b"
    with pytest.raises(ValueError, match="is no address"):
        checked_regions(" ; ")


def test_a_worker_is_told_that_it_serves_one_region() -> None:
    with pytest.raises(InvalidRequest, match="serves one region"):
        workers_urls([BOTH])


def test_a_nearer_region_is_looked_at_by_one_question_in_a_while() -> None:
    clock = Clock()
    addresses = Addresses(BOTH, clock)
    for url in NEAR:
        assert addresses.pick() == url
        addresses.leave(url)
    assert addresses.pick() == FAR[0]
    clock.seconds += LOOK_FIRST_SECONDS
    addresses.learn("http://far-2:9000")  # owners there do not keep us from looking
    assert [addresses.pick() for _ in range(3)] == [NEAR[0], *["http://far-2:9000"] * 2]
    assert addresses.share_seconds(60, NEAR[0]) == LOOK_SECONDS
    addresses.leave(NEAR[0])
    assert addresses.current == "http://far-2:9000"
    clock.seconds += LOOK_APART_SECONDS_MAX
    assert addresses.pick() == NEAR[1], "another one of the same region"
    addresses.answered(NEAR[1])
    assert [addresses.pick() for _ in range(3)] == [NEAR[1]] * 3
    clock.seconds += LOOK_APART_SECONDS_MAX
    assert addresses.pick() == NEAR[1], "the nearest: nothing to look for"


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30)), max_size=40))
def test_whatever_happened_before_the_nearest_is_found_again(
    steps: list[tuple[int, int]],
) -> None:
    """After any failures, once the first region answers, all questions go there within a bound."""
    clock = Clock()
    addresses = Addresses("http://a,http://b;http://c;http://d,http://e,http://f", clock)
    for away, seconds in steps:
        clock.seconds += seconds
        url = addresses.pick()
        (addresses.leave if url == addresses.all[away] else addresses.answered)(url)
    for _ in range(8):  # of three that are nearer one is looked at each time
        clock.seconds += LOOK_APART_SECONDS_MAX
        url = addresses.pick()
        if url in ("http://a", "http://b"):
            addresses.answered(url)
        else:
            addresses.leave(url)
    assert addresses.pick() in ("http://a", "http://b")


async def test_a_program_goes_to_the_next_region_and_comes_back(
    server: TinyServer, far: TinyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_FIRST_SECONDS", 0.2)
    far.keys, far.jobs = server.keys, server.jobs  # what one takes the other knows of
    app = App("producer", url=f"{server.url};{far.url}", api_key=API_KEY, patience="15s")

    @app.job
    def note(text: str) -> None: ...

    server.moods += ["drop", AWAY]  # it heard the job, and its reply is lost; then it is away
    first = await note.aenqueue("x")
    assert [len(far.requests), len(server.jobs)] == [1, 1], "the other region found it by its key"
    await asyncio.sleep(0.25)
    second = await note.aenqueue("y")  # looks at the first one, in vain
    assert [len(server.requests), len(far.requests), len(server.jobs)] == [2, 2, 2]
    await asyncio.sleep(0.25)
    await note.aenqueue("z")  # looks again: it is back
    await note.aenqueue("z")
    assert [len(server.requests), len(far.requests)] == [4, 2]
    for handle in (first, second):
        server.finish(handle.id, result=None)
        far.finish(handle.id, result=None)
        await handle.aresult(timeout=5)
    sent = [one for one in server.requests + far.requests if one.method == "POST"]
    keys = {request.headers["idempotency-key"] for request in sent}
    assert (len(sent), len(keys)) == (6, 4), "each job had one key, wherever it was sent"
    await app.aclose()
