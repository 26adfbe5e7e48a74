"""Requests that wish for a protocol which they do not get are plain ones. All by raw sockets."""

from __future__ import annotations

import time

import pytest
from tests.api.house import House
from tests.api.http.test_lean_protocol import JOB, heard, line, replies

WISH = "connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQ\r\n"
LAST = b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
CHUNKED = b"5\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (JOB[:5], len(JOB) - 5, JOB[5:])
BODIES = {f"content-length: {len(JOB)}": JOB, "transfer-encoding: chunked": CHUNKED}


def wishing(key: str, framing: str) -> bytes:
    head = f"POST /v1/jobs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n{WISH}"
    return f"{head}{framing}\r\n\r\n".encode()


@pytest.mark.parametrize("pieces", [1, 2, 40])
@pytest.mark.parametrize("framing", BODIES)
def test_its_body_is_read_and_what_follows_is_the_next(
    house: House, framing: str, pieces: int
) -> None:
    _, key = house.new_tenant()
    head, body = wishing(key, framing), BODIES[framing]
    cuts = {1: [], 2: [len(head)], 40: range(len(head) - 20, len(head) + 20)}[pieces]
    text = (head + body) * 2 + LAST
    with line(house) as connection:
        for start, end in zip((0, *cuts), (*cuts, len(text)), strict=True):
            connection.sendall(text[start:end])
            time.sleep(0.003 if pieces > 1 else 0)
        assert [status for status, *_ in replies(heard(connection))] == [202, 202, 200]


def test_without_a_body_what_follows_is_the_next(house: House) -> None:
    wish = f"GET /livez HTTP/1.1\r\nhost: x\r\n{WISH}\r\n".encode()
    with line(house) as connection:
        connection.sendall(wish + LAST)
        assert [status for status, *_ in replies(heard(connection))] == [200, 200]


def test_a_body_without_an_end_is_refused(house: House) -> None:
    _, key = house.new_tenant()
    with line(house) as connection:
        connection.sendall(wishing(key, "transfer-encoding: gzip") + JOB)
        assert b" 202 " not in heard(connection)
