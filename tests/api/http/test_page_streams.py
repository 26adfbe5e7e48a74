"""Pages: whoever does not read its own keeps nobody else waiting, and fills no memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.responses import Response

from fairway.api.http.page_streams import PIECE_BYTES, TENANT_PAGES_MAX, PageReply
from fairway.core.errors import Unavailable
from fairway.core.ids import TenantId
from fairway.services.backpressure.owner_slots import OwnerSlots

GREEDY, OTHER = 1, 2
BODY = b"x" * (3 * PIECE_BYTES + 5)


class Reader:
    """Takes a reply piece by piece, if at all."""

    def __init__(self, *, reads: bool = True) -> None:
        self.may_go_on = asyncio.Event()
        self.begun = asyncio.Event()
        self.pieces: list[bytes] = []
        self.is_over = False
        if reads:
            self.may_go_on.set()

    async def __call__(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
            return
        self.begun.set()
        await self.may_go_on.wait()
        self.pieces.append(message["body"])
        self.is_over = not message.get("more_body", False)


async def ask(places: OwnerSlots, tenant: int, reader: Reader, body: bytes = BODY) -> None:
    async def make() -> Response:
        return Response(body)

    await PageReply(places, TenantId(tenant), make)({}, None, reader)


@pytest.mark.parametrize("body", [b"", b"{}", BODY])
async def test_a_page_comes_whole(body: bytes) -> None:
    reader = Reader()
    await ask(OwnerSlots("pages", per_owner=1, in_all=1), GREEDY, reader, body)
    assert (b"".join(reader.pieces), reader.is_over) == (body, True)
    assert reader.headers[b"content-length"] == str(len(body)).encode()
    assert max(map(len, reader.pieces)) <= PIECE_BYTES


async def test_who_does_not_read_holds_up_itself_alone() -> None:
    places = OwnerSlots("pages", per_owner=TENANT_PAGES_MAX, in_all=100, wait_seconds=0.05)
    deaf = [Reader(reads=False) for _ in range(TENANT_PAGES_MAX)]
    asking = [asyncio.create_task(ask(places, GREEDY, reader)) for reader in deaf]
    await asyncio.gather(*(reader.begun.wait() for reader in deaf))
    with pytest.raises(Unavailable):
        await ask(places, GREEDY, Reader())
    await ask(places, OTHER, Reader())
    for reader in deaf:
        reader.may_go_on.set()
    await asyncio.gather(*asking)
    await ask(places, GREEDY, Reader())
