"""What a head may have besides its bytes, and requests that wait behind another. By raw sockets."""

from __future__ import annotations

import json
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from tests.api.house import House

from fairway.api.http import gate
from fairway.api.http.head_limits import HEADERS_MAX, TARGET_BYTES_MAX

PATIENCE_SECONDS = 20.0  # for a busy machine
HELLO = {"types": [{"name": "none"}], "slots": {"short": 1}}
LIVEZ = b"GET /livez HTTP/1.1\r\nhost: x\r\n"


@contextmanager
def line(house: House) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", house.port), timeout=PATIENCE_SECONDS) as found:
        yield found


def until(condition: Callable[[], bool], what: str) -> None:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < PATIENCE_SECONDS, what
        time.sleep(0.01)


def answer(house: House, request: bytes) -> bytes:
    with line(house) as connection:
        connection.sendall(request)
        return connection.recv(1 << 16)


def test_as_many_headers_as_may_be_are_taken_and_one_more_is_not(house: House) -> None:
    most = LIVEZ + b"a: b\r\n" * (HEADERS_MAX - 1)
    assert answer(house, most + b"\r\n").startswith(b"HTTP/1.1 200 ")
    refused = answer(house, most + b"a: b\r\n\r\n")
    assert refused.startswith(b"HTTP/1.1 431 ")
    assert json.loads(refused.partition(b"\r\n\r\n")[2])["code"] == "HEAD_TOO_LARGE"


def test_too_many_are_refused_before_the_head_is_whole(house: House) -> None:
    """Nobody may hold them for as long as a head may take."""
    assert answer(house, LIVEZ + b"a:\r\n" * (HEADERS_MAX + 9)).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("end", [b"", b" HTTP/1.1\r\nhost: x\r\n\r\n"], ids=["half", "whole"])
def test_a_long_address_is_refused(house: House, end: bytes) -> None:
    path = b"/livez?" + b"a" * (TARGET_BYTES_MAX - len(b"/livez?"))
    assert answer(house, b"GET %b HTTP/1.1\r\nhost: x\r\n\r\n" % path).startswith(b"HTTP/1.1 200 ")
    assert answer(house, b"GET %baa%b" % (path, end)).startswith(b"HTTP/1.1 431 ")


def test_trailers_are_no_headers(house: House) -> None:
    """They come after everybody has looked: here a key that nobody asked for any more."""
    _, key = house.new_tenant()
    head = b"POST /v1/jobs HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    body = b"c\r\n" + b'{"type":"t"}' + b"\r\n0\r\n"
    trailers = f"authorization: Bearer {key}\r\n".encode() + b"a:\r\n" * 9000
    assert answer(house, head + body + trailers + b"\r\n").startswith(b"HTTP/1.1 401 ")
    keyed = head[:-2] + f"authorization: Bearer {key}\r\n\r\n".encode()
    assert answer(house, keyed + body + b"a:\r\n" * 9000 + b"\r\n").startswith(b"HTTP/1.1 202 ")


# -- requests that wait behind another -----------------------------------------------------------


def ahead(house: House, stack: ExitStack, key: str) -> socket.socket:
    """A call that is held open, and a request behind it."""
    connection, session = stack.enter_context(line(house)), secrets.token_hex(16)
    body = {"session": session, "hello": HELLO, "running": [], "wait_ms": 20_000}
    text = json.dumps(body).encode()
    head = f"POST /v1/workers/w/exchange HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n"
    connection.sendall(head.encode() + b"content-length: %d\r\n\r\n" % len(text) + text)
    sessions = house.platform.dispatcher.sessions
    until(lambda: session in sessions and sessions[session].poll is not None, "it is held")
    connection.sendall(LIVEZ + b"\r\n")
    return connection


def test_of_too_many_that_are_ahead_the_one_that_waited_longest_is_closed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "AHEAD_MAX", 2)
    key = house.new_key({"scope": "worker"})
    refused = house.platform.metrics.connections_refused.labels("ahead")._value
    with ExitStack() as stack:
        before = refused.get()
        first, second, _ = [ahead(house, stack, key) for _ in range(3)]
        until(lambda: refused.get() == before + 1, "one is closed")
        assert first.recv(1) == b"", "closed"
        second.settimeout(0.2)
        with pytest.raises(TimeoutError):
            second.recv(1)


def test_who_has_heard_all_answers_is_not_ahead_any_more(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "AHEAD_MAX", 2)
    _, key = house.new_tenant()
    look = f"GET /v1/jobs?limit=1 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\r\n"
    with ExitStack() as stack:
        lines = [stack.enter_context(line(house)) for _ in range(6)]
        for connection in [*lines, *lines]:
            connection.sendall(look.encode() * 3)
            heard = b""
            while heard.count(b"HTTP/1.1 200 ") < 3:
                part = connection.recv(1 << 16)
                assert part, "closed"
                heard += part
