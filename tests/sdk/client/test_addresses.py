"""Several servers: a program goes on with the next when one gives no answer, and accepts once."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sdk.tiny_server import API_KEY, Reply, TinyServer, problem

from fairway import App, LimitReached, Unreachable
from fairway.sdk.http.addresses import LEFT_SECONDS, OWNER_SECONDS, Addresses

AWAY = "http://127.0.0.1:1"  # nobody listens there
BUSY = Reply(503, problem("UNAVAILABLE", 503, "Not now."), {"retry-after": "30"})
FULL = Reply(429, problem("RATE_LIMITED", 429, "Too many."), {"retry-after": "30"})


@pytest.fixture
def second() -> Iterator[TinyServer]:
    server = TinyServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def silent() -> Iterator[str]:
    """Takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        held: list[socket.socket] = []

        def hold() -> None:
            while True:
                try:
                    held.append(listener.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=hold, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)
        for one in held:
            one.close()


def producer(*urls: str, patience: str = "15s") -> App:
    app = App("producer", url=",".join(urls), api_key=API_KEY, patience=patience)

    @app.job
    def note(text: str) -> None: ...

    return app


async def test_the_next_server_is_asked_at_once(server: TinyServer) -> None:
    app, began = producer(AWAY, server.url), time.monotonic()
    for _ in range(3):
        await app.jobs["note"].aenqueue("x")
    assert len(server.jobs) == 3
    assert time.monotonic() - began < 12, "a pause, or the silent one asked first each time"
    await app.aclose()


async def test_one_that_cannot_now_is_left_and_stays_left(
    server: TinyServer, second: TinyServer
) -> None:
    server.moods.append(BUSY)
    app = producer(server.url, second.url)
    for _ in range(2):
        await app.jobs["note"].aenqueue("x")
    assert (len(server.requests), len(second.jobs)) == (1, 2)
    await app.aclose()


async def test_a_lost_reply_is_asked_for_elsewhere_with_the_same_key(
    server: TinyServer, second: TinyServer
) -> None:
    second.keys = server.keys  # one database behind both
    second.jobs = server.jobs
    server.moods.append("drop")
    app = producer(server.url, second.url)
    handle = await app.jobs["note"].aenqueue("x")
    assert list(server.jobs) == [handle.id]
    assert len(second.requests) == 1
    await app.aclose()


async def test_a_limit_is_the_same_everywhere(server: TinyServer, second: TinyServer) -> None:
    server.moods.append(FULL)
    app = producer(server.url, second.url, patience="1s")
    with pytest.raises(LimitReached):
        await app.jobs["note"].aenqueue("x")
    assert not second.requests
    await app.aclose()


async def test_a_silent_one_leaves_time_for_the_others(silent: str, server: TinyServer) -> None:
    app = producer(silent, server.url, patience="2s")
    await app.jobs["note"].aenqueue("x")
    assert len(server.jobs) == 1
    await app.aclose()


async def test_all_are_away(server: TinyServer) -> None:
    app = producer(AWAY, "http://127.0.0.1:2", patience="1s")
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1 and http://127\.0\.0\.1:2 gave no"):
        await app.jobs["note"].aenqueue("x")
    await app.aclose()


@given(st.integers(1, 5), st.lists(st.integers(0, 4)))
def test_each_is_asked_once_before_any_is_asked_again(count: int, late: list[int]) -> None:
    """Whatever others say of servers that they left before."""
    urls = [f"http://s{n}" for n in range(count)]
    addresses, asked = Addresses(",".join(urls)), []
    for tries in range(1, count + 1):
        asked.append(url := addresses.current)
        addresses.leave(url)
        for other in late:
            if urls[other % count] != addresses.current:
                addresses.leave(urls[other % count])
        assert addresses.are_all_tried(tries) is (tries == count)
        assert addresses.rounds(tries) == 1
    assert sorted(asked) == urls


GIVEN = "http://a.example:8700,https://b.example,http://127.0.0.1:8700"


@pytest.mark.parametrize(
    ("told", "is_heeded"),
    [
        ("http://a.example:9000", True),
        ("http://a.example", True),
        ("https://b.example:8443", True),
        ("http://localhost:8701", True),  # this machine has several names
        ("http://[::1]:8701", True),
        ("http://b.example", False),  # the key would go in the clear
        ("https://a.example", False),
        ("http://evil.example:8700", False),
        ("http://a.example.evil.example", False),
        ("http://a.example@evil.example", False),
        ("http://evil.example#a.example", False),
        ("http://a.example:8700/path", False),
        ("http://a.example:99999", False),
        ("http://a.example\\@evil.example", False),
        ("http://a.example:1\r\nx: y", False),
        ("ftp://a.example", False),
        ("//a.example", False),
        ("http://[a.example", False),
        ("", False),
        ("http://a.example:1" + "0" * 400, False),
    ],
)
def test_only_hosts_that_were_given_are_heeded(told: str, is_heeded: bool) -> None:
    addresses = Addresses(GIVEN)
    addresses.learn(told)
    assert addresses.current == (told if is_heeded else "http://a.example:8700")
    assert addresses.is_short_cut(addresses.current) is is_heeded


@given(st.text(alphabet="htps:/@.#?\\[]aev1 -", max_size=40))
def test_whatever_a_reply_names_the_key_goes_to_known_hosts_only(told: str) -> None:
    addresses = Addresses("http://a.e:8700")
    addresses.learn(told)
    assert urlsplit(addresses.current).hostname == "a.e"


def test_an_owner_is_forgotten_after_a_while_and_at_the_first_failure() -> None:
    seconds = [0.0]
    addresses = Addresses("http://a:1,http://b:1", now=lambda: seconds[0])
    addresses.learn("http://b:2")
    addresses.learn(None)  # most replies name nobody
    assert addresses.current == "http://b:2"
    seconds[0] += OWNER_SECONDS
    assert addresses.current == "http://a:1"
    addresses.learn("http://b:2")
    addresses.leave("http://b:2")
    assert addresses.current == "http://a:1"
    addresses.learn("http://b:2")
    assert addresses.current == "http://a:1", "who named it did not know yet"
    seconds[0] += LEFT_SECONDS
    addresses.learn("http://b:2")
    assert addresses.current == "http://b:2"
    addresses.leave("http://b:2")
    addresses.learn("http://a:1")  # one that was given is left as such
    addresses.leave("http://a:1")
    assert addresses.current == "http://b:1"


@pytest.mark.parametrize("is_many", [False, True])
async def test_jobs_go_to_the_owner_until_it_gives_no_answer(
    server: TinyServer, second: TinyServer, is_many: bool
) -> None:
    second.keys, second.jobs = server.keys, server.jobs  # one database behind both
    server.owner = second.url
    app = producer(server.url)
    note = app.jobs["note"]

    async def hand_in() -> None:
        if is_many:
            await note.aenqueue_many([note.call("x"), note.call("y")])
        else:
            await note.aenqueue("x")

    await hand_in()
    await hand_in()
    assert (len(server.requests), len(second.requests)) == (1, 1)
    second.moods.append("drop")
    began = time.monotonic()
    await hand_in()
    assert (len(server.requests), len(second.requests)) == (2, 2)
    assert len(server.jobs) == 3 * (1 + is_many), "the lost reply made no double"
    assert time.monotonic() - began < 5
    await app.aclose()


@pytest.mark.parametrize("is_many", [False, True])
async def test_an_owner_that_restarts_is_left_within_seconds(
    server: TinyServer, second: TinyServer, is_many: bool
) -> None:
    """Who connects to its address waits in line; a sibling would answer at once."""
    second.keys, second.jobs = server.keys, server.jobs  # one database behind both
    server.owner = second.url
    app = producer(server.url)
    note = app.jobs["note"]
    await note.aenqueue("x")
    second.moods.append("hold")
    began = time.monotonic()
    if is_many:
        await note.aenqueue_many([note.call("y"), note.call("z")])
    else:
        await note.aenqueue("y")
    assert time.monotonic() - began < 5
    await note.aenqueue("v")
    assert (len(server.requests), len(second.requests)) == (3, 1), "it was not followed again"
    assert len(server.jobs) == 3 + is_many, "the silence made no double"
    await app.aclose()


async def test_jobs_that_the_owner_may_have_heard_of_keep_their_one_key(
    server: TinyServer, second: TinyServer
) -> None:
    """Its reply is lost, and the next server has no room: they must not go apart, each anew."""
    second.keys, second.jobs = server.keys, server.jobs  # one database behind both
    server.owner = second.url
    app = producer(server.url)
    note = app.jobs["note"]
    await note.aenqueue("x")
    second.moods += ["hold", "drop"]
    server.moods.append(Reply(429, problem("TENANT_RATE_LIMIT_EXCEEDED", 429)))
    alone = asyncio.create_task(note.aenqueue("y"))
    while len(second.requests) < 1:  # noqa: ASYNC110  (another thread)
        await asyncio.sleep(0.01)
    together = [asyncio.create_task(note.aenqueue(text)) for text in "ab"]
    await asyncio.sleep(0.05)
    second.let_go()
    await asyncio.gather(alone, *together)
    assert len(server.jobs) == 4
    await app.aclose()
