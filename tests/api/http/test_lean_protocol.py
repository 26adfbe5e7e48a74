"""Replies that leave as one text, and one timer for many requests. All by raw sockets."""

from __future__ import annotations

import gc
import json
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.api.house import House, own_house
from tests.postgres import Server

from fairway.api.http.lean_protocol import LeanProtocol
from fairway.api.jobs import events as events_api

IDLE_SECONDS = 1.0
PATIENCE_SECONDS = 20.0  # for a busy machine
JOB = b'{"type":"t","payload":{"n":1}}'
HEADERS = {b"content-type", b"location", b"ratelimit-policy", b"ratelimit", b"content-length"}


@pytest.fixture(scope="module")
def brief(postgres_server: Server) -> Iterator[House]:
    """A server that soon closes who is idle."""
    with own_house(
        postgres_server, "lean_protocol_tests", head_seconds=0.5, idle_seconds=IDLE_SECONDS
    ) as house:
        yield house


@contextmanager
def line(house: House) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", house.port), timeout=PATIENCE_SECONDS) as found:
        yield found


def posted(key: str, *lines: str, version: str = "1.1") -> bytes:
    head = [f"POST /v1/jobs HTTP/{version}", "host: x", f"authorization: Bearer {key}", *lines]
    return "\r\n".join([*head, f"content-length: {len(JOB)}", "", ""]).encode() + JOB


def waiting(key: str) -> bytes:
    return posted(key, "prefer: wait=1")


def heard(connection: socket.socket) -> bytes:
    """Everything until the other side closes."""
    parts = []
    while data := connection.recv(1 << 16):
        parts.append(data)
    return b"".join(parts)


def replies(text: bytes) -> list[tuple[int, dict[bytes, bytes], bytes]]:
    """Status, headers and body of each; nothing may be left over."""
    found = []
    while text:
        head, _, rest = text.partition(b"\r\n\r\n")
        status, *lines = head.split(b"\r\n")
        headers = dict(one.split(b": ", 1) for one in lines)
        size = int(headers[b"content-length"])
        found.append((int(status.split()[1]), headers, rest[:size]))
        text = rest[size:]
    return found


def test_a_reply_is_whole_and_leaves_the_connection_open(brief: House) -> None:
    _, key = brief.new_tenant()
    with line(brief) as connection:
        for _ in range(3):
            connection.sendall(posted(key))
            ((status, headers, body),) = replies(connection.recv(1 << 16))
            assert status == 202
            assert headers.keys() == HEADERS
            assert headers[b"location"].endswith(json.loads(body)["id"].encode())


@pytest.mark.parametrize(("version", "last"), [("1.0", []), ("1.1", ["connection: close"])])
def test_the_last_reply_says_so_and_closes(brief: House, version: str, last: list[str]) -> None:
    _, key = brief.new_tenant()
    with line(brief) as connection:
        began = time.monotonic()
        connection.sendall(posted(key, *last, version=version))
        ((status, headers, _),) = replies(heard(connection))
        assert status == 202
        assert headers[b"connection"] == b"close"
        assert time.monotonic() - began < IDLE_SECONDS


def test_requests_in_advance_are_answered_in_their_order(brief: House) -> None:
    _, key = brief.new_tenant()
    with line(brief) as connection:
        connection.sendall(posted(key))
        assert replies(connection.recv(1 << 16))[0][0] == 202
        count = 8
        connection.sendall(posted(key) * count)  # none of them the last: all might go out whole
        text = b""
        while text.count(b"HTTP/1.1 ") < count or not text.endswith(b"}"):
            part = connection.recv(1 << 16)
            assert part, "closed"
            text += part
        found = replies(text)
        ids = [json.loads(body)["id"] for _, _, body in found]
        assert [status for status, _, _ in found] == [202] * count
        assert ids == sorted(ids)


def test_who_waits_to_be_told_to_go_on_hears_that_first(brief: House) -> None:
    _, key = brief.new_tenant()
    request = posted(key, "expect: 100-continue")
    with line(brief) as connection:
        connection.sendall(request[: -len(JOB)])
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 100 ")
        connection.sendall(JOB)
        assert replies(connection.recv(1 << 16))[0][0] == 202


def test_who_does_not_wait_hears_it_first_as_well(brief: House) -> None:
    """The answer to this one is there in the same turn of the event loop."""
    key = brief.new_key({"scope": "worker"})
    body = json.dumps({"session": "1" * 32}).encode()
    head = f"POST /v1/workers/w/exchange HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n"
    more = f"expect: 100-continue\r\ncontent-length: {len(body)}\r\n\r\n"
    with line(brief) as connection:
        for _ in range(3):  # the first time its key is looked up
            connection.sendall((head + more).encode() + body)
            text = b""
            while b"resync" not in text:
                text += connection.recv(1 << 16)
            assert text.startswith(b"HTTP/1.1 100 ")
            assert replies(text.partition(b"\r\n\r\n")[2])[0][0] == 200


def test_a_connection_is_idle_since_its_last_reply(brief: House) -> None:
    _, key = brief.new_tenant()
    with line(brief) as connection:
        for _ in range(4):
            connection.sendall(posted(key))
            assert replies(connection.recv(1 << 16))[0][0] == 202
            answered = time.monotonic()
            time.sleep(0.6 * IDLE_SECONDS)
        assert connection.recv(1 << 16) == b""
    assert 0.9 * IDLE_SECONDS < time.monotonic() - answered < 5 * IDLE_SECONDS


def test_a_connection_is_not_idle_while_the_next_request_comes(brief: House) -> None:
    """The timer of the first rest goes off while half a head is there: another clock is on it."""
    _, key = brief.new_tenant()
    with line(brief) as connection:
        for _ in range(2):
            connection.sendall(posted(key))
            assert replies(connection.recv(1 << 16))[0][0] == 202
            time.sleep(0.9 * IDLE_SECONDS)
            request = posted(key)
            connection.sendall(request[:10])
            time.sleep(0.2 * IDLE_SECONDS)
            connection.sendall(request[10:])
            assert replies(connection.recv(1 << 16))[0][0] == 202
        assert connection.recv(1 << 16) == b"", "after which it is idle again"


def test_a_connection_that_is_over_is_not_left_to_the_collector(brief: House) -> None:
    """Thousands that were, were freed at a stretch: 30 ms of everybody's time."""
    _, key = brief.new_tenant()
    gc.collect()
    gc.disable()
    try:
        before = _protocols()
        for _ in range(20):
            with line(brief) as connection:
                connection.sendall(posted(key))
                assert connection.recv(1 << 16).startswith(b"HTTP/1.1 202")
            with line(brief) as connection:  # and one that asks for nothing
                pass
            with line(brief) as connection:  # and one that leaves before its answers
                connection.sendall(waiting(key) * 2)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while _protocols() > before and time.monotonic() < deadline:
            time.sleep(0.05)
        assert _protocols() <= before
    finally:
        gc.enable()


def _protocols() -> int:
    return sum(isinstance(one, LeanProtocol) for one in gc.get_objects())


STREAMS = 40
OBJECTS_EACH = 10  # a library's streams left a hundred and fifty each


def test_a_stream_of_events_leaves_nothing_to_the_collector(brief: House) -> None:
    """Whoever opens and leaves them all day would make everybody wait for it."""
    _, key = brief.new_tenant()
    events = followed(brief, key)
    asked_for(brief, events)  # what is made once is there
    gc.collect()
    gc.disable()
    try:
        before = _protocols()
        for _ in range(STREAMS):
            asked_for(brief, events)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while _protocols() > before and time.monotonic() < deadline:
            time.sleep(0.05)
        assert gc.collect() < STREAMS * OBJECTS_EACH
    finally:
        gc.enable()


def followed(house: House, key: str) -> bytes:
    """The request for the events of a job."""
    with line(house) as connection:
        connection.sendall(posted(key))
        (_, headers, _), *_ = replies(connection.recv(1 << 16))
    path = headers[b"location"].decode()
    lines = [f"GET {path}/events HTTP/1.1", "host: x", f"authorization: Bearer {key}", "", ""]
    return "\r\n".join(lines).encode()


def asked_for(house: House, request: bytes) -> None:
    with line(house) as connection:
        connection.sendall(request)
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")


def test_a_stream_ends_with_its_connection_whatever_was_asked_behind_it(
    brief: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection knew the last request only, and the stream was never told."""
    monkeypatch.setattr(events_api, "FOLLOW_SECONDS", 0.2)  # a write finds out that nobody reads
    _, key = brief.new_tenant()
    events = followed(brief, key)
    with line(brief) as connection:
        connection.sendall(events * 2)
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    deadline = time.monotonic() + PATIENCE_SECONDS
    places = brief.platform.waiting
    while places._totals["streams"] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert places._totals["streams"] == 0
