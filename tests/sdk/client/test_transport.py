"""A payload is put where it was told to, until it is there; what arrived is not sent for ever."""

from __future__ import annotations

import pytest
from tests.sdk.tiny_server import API_KEY, Reply, TinyServer, problem

from fairway.core.errors import Conflict, LimitReached
from fairway.sdk.http.settings import ClientSettings
from fairway.sdk.http.transport import Transport

USED = Reply(409, problem("CONFLICT", 409, "This address was used."))
FULL = Reply(429, problem("TOO_MANY_UPLOADS", 429, "Too many."), {"retry-after": "0"})


def transport(server: TinyServer, patience_seconds: float = 20) -> Transport:
    return Transport(ClientSettings(url=server.url, api_key=API_KEY), "test", patience_seconds)


async def test_not_now_and_a_lost_reply_are_tried_again(server: TinyServer) -> None:
    server.moods.extend([FULL, "drop", USED])
    await transport(server).put(f"{server.url}/v1/uploads/u", b"{}")
    assert [request.method for request in server.requests] == ["PUT"] * 3
    assert {request.headers.get("authorization") for request in server.requests} == {None}


async def test_an_address_that_somebody_else_used_is_no_success(server: TinyServer) -> None:
    server.moods.append(USED)
    with pytest.raises(Conflict):
        await transport(server).put(f"{server.url}/v1/uploads/u", b"{}")


async def test_patience_ends(server: TinyServer) -> None:
    server.moods.extend([FULL] * 50)
    with pytest.raises(LimitReached):
        await transport(server, patience_seconds=0.2).put(f"{server.url}/v1/uploads/u", b"{}")
