"""A front door that cannot be clogged: heads, silent connections, crowds. All by raw sockets."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.api.house import House, open_house, own_house
from tests.postgres import (
    Server,
    at_database,
    drop_database,
    in_thread,
    make_database,
)

from fairway.api.docs import pages
from fairway.api.http import asgi
from fairway.api.operators import health
from fairway.services.platform import Platform

CONNECTIONS_MAX = 200
HEAD_SECONDS = 0.5
PATIENCE_SECONDS = 20.0  # for a busy machine


@contextmanager
def open_narrow(server: Server, name: str, objects: Path) -> Iterator[House]:
    """A server with little room and little patience."""
    in_thread(make_database(server.dsn, name, template=server.template))
    with open_house(
        at_database(server.dsn, name),
        storage_url=f"file://{objects}",
        connections_max=CONNECTIONS_MAX,
        head_seconds=HEAD_SECONDS,
        idle_seconds=1.0,
    ) as house:
        yield house
    in_thread(drop_database(server.dsn, name))


@pytest.fixture(scope="module")
def narrow(postgres_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    objects = tmp_path_factory.mktemp("objects")
    with open_narrow(postgres_server, "front_door_tests", objects) as house:
        yield house


@contextmanager
def line(house: House) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", house.port), timeout=PATIENCE_SECONDS) as found:
        yield found


def heard(connection: socket.socket) -> bytes:
    """Everything until the other side closes."""
    parts = []
    try:
        while data := connection.recv(1 << 16):
            parts.append(data)
    except ConnectionError:
        pass
    return b"".join(parts)


def asked(path: str, key: str | None = None, *lines: str, method: str = "GET") -> bytes:
    key_line = [f"authorization: Bearer {key}"] if key else []
    return "\r\n".join([f"{method} {path} HTTP/1.1", "host: x", *key_line, *lines, "", ""]).encode()


def status_of(reply: bytes) -> int:
    return int(reply.split(b" ", 2)[1])


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nhost: x\r\nx-long: " + b"a" * 70_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\n" + b"x-many: a\r\n" * 20_000 + b"\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
    ],
    ids=["one header", "many headers", "request line"],
)
def test_a_head_beyond_64_kb_is_refused(narrow: House, head: bytes) -> None:
    with line(narrow) as connection:
        try:
            connection.sendall(head)
        except ConnectionError:
            pass  # it was closed while we spoke
        reply = heard(connection)
    assert status_of(reply) == 431
    assert json.loads(reply.partition(b"\r\n\r\n")[2])["code"] == "HEAD_TOO_LARGE"


def test_a_large_head_within_the_limit_and_a_large_body_are_taken(narrow: House) -> None:
    _, key = narrow.new_tenant()
    body = json.dumps({"type": "t", "payload": {"x": "y" * 300_000}}).encode()
    head = asked(
        "/v1/jobs",
        key,
        "content-type: application/json",
        f"content-length: {len(body)}",
        f"x-long: {'a' * 60_000}",
        "connection: close",
        method="POST",
    )
    with line(narrow) as connection:
        connection.sendall(head + body)
        assert status_of(heard(connection)) == 202


CHUNKED = b"POST /v1/jobs HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "opening",
    [
        b"GET / HTTP/1.1\r\nx-a: ",
        b"GET /",
        CHUNKED + b"1\r\n{\r\n0\r\nx-trailer: ",
        CHUNKED + b"1;extension=",
    ],
    ids=["header", "request line", "trailer", "chunk extension"],
)
def test_an_endless_head_costs_next_to_nothing(narrow: House, opening: bytes) -> None:
    """As one header of 100 MB did 16 s of the event loop: it is cut before it is large."""
    watch = narrow.platform.stalls
    narrow.inside(_forget_stalls)
    sent, part = 0, b"a" * (1 << 20)
    with line(narrow) as connection:
        try:
            connection.sendall(opening)
            while sent < 100:
                connection.sendall(part)
                sent += 1
        except ConnectionError:
            pass
    assert sent < 20  # what fits the buffers in between
    assert watch.longest().busy_seconds < 0.05


async def _forget_stalls(platform: Platform) -> None:
    platform.stalls.forget()


@pytest.mark.parametrize("said", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nhost: x\r\n"])
def test_who_owes_a_head_is_closed(narrow: House, said: bytes) -> None:
    with line(narrow) as connection:
        connection.sendall(said)
        reply = heard(connection)
    assert (status_of(reply) == 408) if said else (reply == b"")


def test_a_head_that_drips_has_one_deadline_in_all(narrow: House) -> None:
    with line(narrow) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nx-a: ")
        deadline = time.monotonic() + PATIENCE_SECONDS
        try:
            while time.monotonic() < deadline:
                connection.sendall(b"a")
                connection.settimeout(0.1)
                try:
                    reply = connection.recv(1 << 16)
                    break
                except TimeoutError:
                    continue
        except ConnectionError:
            return
    assert status_of(reply) == 408


def test_an_idle_connection_is_closed_and_a_held_call_is_not(narrow: House) -> None:
    _, key = narrow.new_tenant()
    with line(narrow) as idle, line(narrow) as held:
        idle.sendall(asked("/livez"))
        body = json.dumps({"type": "nobody.runs.this"}).encode()
        lines = ["prefer: wait=3", "content-type: application/json"]
        lines.append(f"content-length: {len(body)}")
        held.sendall(asked("/v1/jobs", key, *lines, method="POST") + body)
        assert status_of(heard(idle)) == 200  # and then it ended
        assert status_of(held.recv(1 << 16)) == 202


def test_a_body_in_tiny_chunks_is_taken(narrow: House) -> None:
    _, key = narrow.new_tenant()
    body = json.dumps({"type": "t", "payload": {"x": "y" * 50_000}}).encode()
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body)  # six bytes for one
    lines = ["content-type: application/json", "transfer-encoding: chunked", "connection: close"]
    with line(narrow) as connection:
        connection.sendall(asked("/v1/jobs", key, *lines, method="POST"))
        connection.sendall(chunks + b"0\r\n\r\n")
        assert status_of(heard(connection)) == 202


def test_a_body_that_nobody_reads_must_end(narrow: House) -> None:
    head = asked("/v1/jobs", None, "content-length: 1000000", method="POST")
    with line(narrow) as connection:
        connection.sendall(head + b"{")
        assert status_of(heard(connection)) == 401  # answered at once, and closed in the end


def test_a_crowd_of_silent_connections_keeps_nobody_out(narrow: House) -> None:
    _, key = narrow.new_tenant()
    with ExitStack() as crowd:
        silent = [crowd.enter_context(line(narrow)) for _ in range(3 * CONNECTIONS_MAX)]
        for number in range(20):
            with line(narrow) as connection:
                connection.sendall(asked("/v1/jobs", key, "connection: close"))
                assert status_of(heard(connection)) == 200, number
            silent += [crowd.enter_context(line(narrow)) for _ in range(10)]


def test_connections_that_spoke_with_a_key_outlive_the_crowd(narrow: House) -> None:
    _, key = narrow.new_tenant()
    with ExitStack() as crowd, line(narrow) as known:
        known.sendall(asked("/v1/jobs", key))
        assert status_of(known.recv(1 << 16)) == 200
        for _ in range(2 * CONNECTIONS_MAX):
            crowd.enter_context(line(narrow))
        known.sendall(asked("/v1/jobs", key, "connection: close"))
        assert status_of(heard(known)) == 200


def test_a_chain_of_requests_at_once_is_cut(narrow: House) -> None:
    with line(narrow) as connection:
        try:
            connection.sendall(asked("/livez") * 1000)
        except ConnectionError:
            pass
        replies = heard(connection).count(b"HTTP/1.1 200")
    assert replies < 100


def test_what_is_no_http_is_told_so_in_our_words(narrow: House) -> None:
    with line(narrow) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello\r\n\r\n")
        reply = heard(connection)
    assert status_of(reply) == 400
    assert json.loads(reply.partition(b"\r\n\r\n")[2])["code"] == "INVALID_HTTP"


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs/batch", "/v1/schedule-preview"])
def test_a_body_that_never_begins_is_cut_off_as_one_that_drips(
    narrow: House, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(asgi, "BODY_SECONDS_MIN", 0.2)
    _, key = narrow.new_tenant()
    lines = ["content-type: application/json", "content-length: 100"]
    with line(narrow) as connection:
        connection.sendall(asked(path, key, *lines, method="POST"))
        assert status_of(heard(connection)) == 408


def replies(house: House, key: str | None, *, first_alone: bool) -> int:
    """Ask ten times without listening, perhaps once before that; how many answers come."""
    with line(house) as connection:
        if first_alone:
            connection.sendall(asked("/v1/limits", key))
            assert status_of(connection.recv(1 << 16)) == 200
        connection.sendall(asked("/livez", key) * 9 + asked("/livez", key, "connection: close"))
        return heard(connection).count(b"HTTP/1.1 200")


def test_a_stranger_asks_little_in_advance(narrow: House) -> None:
    _, key = narrow.new_tenant()
    assert replies(narrow, None, first_alone=False) <= 3
    assert replies(narrow, key, first_alone=True) == 10


def test_what_anybody_may_read_is_made_once(narrow: House, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counted(module: Any, name: str) -> None:
        really = getattr(module, name)

        def make(*given: Any) -> Any:
            made.append(name)
            return really(*given)

        monkeypatch.setattr(module, name, make)

    monkeypatch.setattr(health, "METRICS_SECONDS", 60.0)
    counted(health, "generate_latest")
    counted(pages, "page")
    for path in ("/metrics", "/", "/docs", "/problems/not-found"):
        for _ in range(3):
            with line(narrow) as connection:
                connection.sendall(asked(path, None, "connection: close"))
                assert status_of(heard(connection)) == 200
        parts = 2 if path == "/metrics" else 1  # what is for all, and what names job types
        assert len(made) <= parts, path
        made.clear()


# -- who is refused while it still sends ---------------------------------------------------------


def test_an_address_with_too_many_connections_is_named_in_the_log(
    postgres_server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    with (
        own_house(postgres_server, "crowded_address", connections_per_address=20) as house,
        ExitStack() as crowd,
    ):
        for _ in range(40):
            crowd.enter_context(line(house))
        ends_at, found = time.monotonic() + PATIENCE_SECONDS, ""
        while "FAIRWAY_CONNECTIONS_PER_ADDRESS" not in found and time.monotonic() < ends_at:
            time.sleep(0.02)
            found += "".join(capfd.readouterr())
    found += "".join(capfd.readouterr())
    (told,) = [one for one in found.splitlines() if "FAIRWAY_CONNECTIONS_PER_ADDRESS" in one]
    assert "127.0.0.1" in told
    assert "20" in told
