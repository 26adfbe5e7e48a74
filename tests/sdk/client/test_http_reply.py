"""A reply is the same however it comes in pieces; what is not HTTP is refused, never waited for."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.sdk.http.http_reply import BODY_BYTES_MAX, HttpReply, NotHttp, ReplyParser

CUTS = st.lists(st.integers(0, 400), max_size=6)


def read(data: bytes, cuts: list[int]) -> HttpReply | None:
    """Fed in pieces; nothing may follow a whole reply."""
    parser, found = ReplyParser(), None
    for start, end in pairwise(sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})):
        assert found is None, "whole before its end"
        found = parser.feed(data[start:end])
    return found


def with_length(body: bytes) -> bytes:
    return b"HTTP/1.1 202 Accepted\r\nContent-Length: %d\r\nX-A:  b \r\n\r\n%b" % (len(body), body)


def in_chunks(body: bytes, size: int) -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    chunks = b"".join(b"%x;n=1\r\n%b\r\n" % (len(part), part) for part in parts)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


@given(st.binary(max_size=200), CUTS)
def test_a_body_with_a_length(body: bytes, cuts: list[int]) -> None:
    reply = read(with_length(body), cuts)
    assert reply is not None
    assert (reply.status_code, reply.content, reply.headers["x-a"]) == (202, body, "b")
    assert reply.keeps_open


@given(st.binary(max_size=200), st.integers(1, 50), CUTS)
def test_a_body_in_chunks(body: bytes, size: int, cuts: list[int]) -> None:
    data = in_chunks(body, size)
    parser = ReplyParser()
    for start, end in pairwise(sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})):
        reply = parser.feed(data[start:end])
    assert reply is not None
    assert reply.content == body


@given(st.binary(max_size=200), CUTS)
def test_a_body_that_ends_with_the_connection(body: bytes, cuts: list[int]) -> None:
    parser = ReplyParser()
    assert parser.feed(b"HTTP/1.0 200 OK\r\n\r\n" + body) is None
    reply = parser.finish()
    assert reply is not None
    assert reply.content == body
    assert not reply.keeps_open


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 200 OK\r\n", with_length(b"abc")[:-1]])
def test_half_a_reply_is_none(data: bytes) -> None:
    parser = ReplyParser()
    assert parser.feed(data) is None
    assert parser.finish() is None


def test_replies_on_the_way_and_without_a_body() -> None:
    on_the_way = b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n"
    reply = read(on_the_way + b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", [3, 40])
    assert reply is not None
    assert (reply.status_code, reply.content, reply.keeps_open) == (204, b"", False)


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
        b"HTTP/1.1 2x0 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (BODY_BYTES_MAX + 1),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * (65 << 10),
    ],
)
def test_what_is_not_http_is_refused(data: bytes) -> None:
    with pytest.raises(NotHttp):
        ReplyParser().feed(data)


@given(st.binary(max_size=300))
def test_no_bytes_make_it_fail_otherwise(data: bytes) -> None:
    for text in (data, b"HTTP/1.1 200 OK\r\n" + data, in_chunks(b"", 1)[:-5] + data):
        try:
            ReplyParser().feed(text)
        except NotHttp:
            pass
