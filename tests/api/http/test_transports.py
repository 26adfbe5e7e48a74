"""The ends of connections: who closes hears why, who reads slowly hears all of it."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator

import pytest
from tests.api.house import House
from tests.api.test_front_door import (
    PATIENCE_SECONDS,
    asked,
    heard,
    line,
    open_narrow,
    status_of,
)
from tests.postgres import Server

from fairway.api.http import gate
from fairway.api.http.transports import LINGER_BYTES

LARGE_BYTES = 7 << 20  # more than the kernel keeps for a connection


@pytest.fixture(scope="module")
def narrow(postgres_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    objects = tmp_path_factory.mktemp("objects")
    with open_narrow(postgres_server, "transport_tests", objects) as house:
        yield house


def large_job(house: House, key: str) -> str:
    body = b'{"type":"t","payload":{"x":"%b"}}' % (b"x" * LARGE_BYTES)
    with line(house) as connection:
        length = f"content-length: {len(body)}"
        connection.sendall(asked("/v1/jobs", key, length, "connection: close", method="POST"))
        connection.sendall(body)
        return str(json.loads(heard(connection).partition(b"\r\n\r\n")[2])["id"])


def test_a_reply_that_nobody_reads_ends_with_its_connection(
    narrow: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "UNREAD_SECONDS", 0.5)
    _, key = narrow.new_tenant()
    job = large_job(narrow, key)
    cut = narrow.platform.metrics.connections_refused.labels("unread")
    before = cut._value.get()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(PATIENCE_SECONDS)
        connection.connect(("127.0.0.1", narrow.port))
        connection.sendall(asked(f"/v1/jobs/{job}/payload", key))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while cut._value.get() == before:
            assert time.monotonic() < deadline, "it is kept for as long as nobody reads"
            time.sleep(0.05)
        assert len(heard(connection)) < LARGE_BYTES


def test_a_slow_reader_is_told_everything(narrow: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "UNREAD_SECONDS", 1.0)
    _, key = narrow.new_tenant()
    job = large_job(narrow, key)
    with line(narrow) as connection:
        connection.sendall(asked(f"/v1/jobs/{job}/payload", key, "connection: close"))
        size = 0
        while part := connection.recv(256 << 10):
            size += len(part)
            time.sleep(0.02)
        assert size > LARGE_BYTES


def sent_whole(connection: socket.socket, request: bytes) -> bytes:
    """As plain clients do: they listen when they have said everything."""
    connection.sendall(request)
    return heard(connection)


@pytest.mark.parametrize("megabytes", [1, 12])
def test_who_closes_after_its_request_hears_why_it_was_refused(
    narrow: House, megabytes: int
) -> None:
    _, key = narrow.new_tenant()
    body = b"x" * (megabytes << 20)
    lines = (f"content-length: {len(body)}", "connection: close")
    with line(narrow) as connection:
        reply = sent_whole(connection, asked("/v1/jobs", None, *lines, method="POST") + body)
    assert status_of(reply) == 401
    with line(narrow) as connection:
        much = asked("/v1/jobs/wait", key, *lines, method="POST") + body
        reply = sent_whole(connection, much)
    assert status_of(reply) == 413
    assert reply.endswith(b"}"), "the answer is whole"
    with line(narrow) as connection:
        reply = sent_whole(connection, asked("/v1/uploads/u", None, *lines, method="PUT") + body)
    assert status_of(reply) == 403


def test_who_never_stops_sending_is_not_listened_to_for_ever(narrow: House) -> None:
    with line(narrow) as connection:
        connection.sendall(
            asked("/v1/jobs", None, "content-length: 999999999", "connection: close", method="POST")
        )
        sent, part = 0, b"x" * (1 << 20)
        try:
            while sent < 3 * LINGER_BYTES:
                sent += connection.send(part)
        except ConnectionError:
            pass
    assert sent < 3 * LINGER_BYTES, "what is on its way in buffers comes on top"
