"""What one connection holds of a server's memory when it does its worst: no more than is stated."""

from __future__ import annotations

import asyncio
import json
import secrets
from contextlib import AsyncExitStack
from itertools import product
from urllib.parse import urlsplit

import pytest
from tests.acceptance.house import House, answers
from tests.acceptance.test_ceiling import peak_bytes

from fairway.services.memory_ceiling import AHEAD_BYTES, CONNECTION_BYTES

COUNT = 200
KB = 1 << 10
TINY = b"a:\r\n"
#: What stands in a head of under 64 KB: as many headers as fit, or as many as may be.
HEADS = {
    "tiny headers": TINY * (15 * KB),
    "long headers": TINY * 120 + b"x-long: " + b"y" * (60 * KB) + b"\r\n",
}
HELLO = {"types": [{"name": "none"}], "slots": {"short": 1}}


def held_call(key: str, headers: bytes) -> bytes:
    """An exchange that the server holds open; its body is one that is not counted."""
    session = secrets.token_hex(16)
    words = {"session": session, "hello": HELLO, "running": [], "wait_ms": 20_000}
    body = json.dumps(words | {"note": "x" * 60 * KB}).encode()
    head = (
        b"POST /v1/workers/w-%b/exchange HTTP/1.1\r\nhost: x\r\nauthorization: Bearer %b\r\n"
        b"%bcontent-length: %d\r\n\r\n"
    )
    return head % (session.encode(), key.encode(), headers, len(body)) + body


def half_a_head(key: str, headers: bytes) -> bytes:
    return b"GET / HTTP/1.1\r\nhost: x\r\n" + headers


def behind(key: str, headers: bytes) -> bytes:
    """More requests than are read in one go."""
    head = b"POST /v1/jobs HTTP/1.1\r\nhost: x\r\n%bcontent-length: %d\r\n\r\n"
    return (head % (headers, 60 * KB) + b"x" * 60 * KB) * 4


WORST = {
    "half a head": [half_a_head],
    "a held call and half a head": [held_call, half_a_head],
    "a held call and what came behind": [held_call, behind],
}


#: Each of the worst, and each kind of head; `make soak` has the rest.
OFTEN = {
    ("half a head", "tiny headers"),
    ("a held call and half a head", "tiny headers"),
    ("a held call and what came behind", "long headers"),
}


@pytest.mark.parametrize(
    ("worst", "head"),
    [
        pytest.param(*one, marks=[] if one in OFTEN else [pytest.mark.slow])
        for one in product(WORST, HEADS)
    ],
)
async def test_a_connection_holds_no_more_than_is_stated(
    house: House, figures: dict[str, str], worst: str, head: str
) -> None:
    server = house.start_server(anew=True)
    await server.ready()
    at_rest = peak_bytes(server.pid)
    async with AsyncExitStack() as stack:
        lines = []
        for _ in range(COUNT):
            _, writer = await asyncio.open_connection("127.0.0.1", urlsplit(server.url).port)
            stack.callback(writer.transport.abort)
            lines.append(writer)
        for say in WORST[worst]:
            for line in lines:
                line.write(say(house.worker_key, HEADS[head]))
                await asyncio.sleep(0.005)
        await answers(f"{server.url}/readyz", 20.0)  # what was sent before has been read
        each = (peak_bytes(server.pid) - at_rest) // COUNT
    figures[f"memory of a connection: {worst}, {head}"] = f"{each >> 10} KB"
    assert each < CONNECTION_BYTES + (AHEAD_BYTES if behind in WORST[worst] else 0)
