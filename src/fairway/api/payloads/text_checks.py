"""Large texts, and what workers say of their runs, looked at by the rule for payloads.

What is long is looked at in a thread, piece by piece: whoever else has something to be looked at
takes turns with it, and no piece takes long.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from functools import partial

from msgspec import Raw

from fairway.api.payloads.body_cost import CAREFUL_BYTES_MAX, LIGHT_BYTES
from fairway.core.errors import InvalidRequest, LimitReached, Unavailable
from fairway.core.ids import TenantId
from fairway.services.backpressure.waiting_slots import HeavyWork
from fairway.wire.payload import are_plain, flaw_in
from fairway.wire.payload_scan import PayloadScan, in_pieces


async def look_through(lane: HeavyWork, holder: TenantId, pieces: AsyncIterator[bytes]) -> None:
    """Refuses what cannot be a payload. Never more than a piece of it is held."""
    scan = PayloadScan()
    async for some in pieces:
        for piece in in_pieces(some):
            await lane.run(holder, partial(scan.feed, piece), len(piece))
    await lane.run(holder, scan.finish)


async def flaws_in(lane: HeavyWork, holder: TenantId, said: Mapping[int, Raw]) -> dict[int, str]:
    """Of JSON values that a worker said, those that nobody could read, and why."""
    try:
        large = {place: one for place, one in said.items() if len(one) > LIGHT_BYTES}
        texts = {place: bytes(one) for place, one in said.items() if place not in large}
        flaws = await _flaws_in_small(lane, holder, texts)
        for place, one in large.items():
            if (flaw := await _flaw_in_large(lane, holder, one)) is not None:
                flaws[place] = flaw
        return flaws
    except LimitReached as error:
        raise Unavailable(error.message, code="OVERLOADED") from None  # a worker comes again


async def _flaws_in_small(
    lane: HeavyWork, holder: TenantId, texts: Mapping[int, bytes]
) -> dict[int, str]:
    size = sum(map(len, texts.values()))
    if size <= LIGHT_BYTES and are_plain(list(texts.values())):
        return {}
    look = partial(_flaws, texts)
    return look() if size <= CAREFUL_BYTES_MAX else await lane.run(holder, look, size)


def _flaws(texts: Mapping[int, bytes]) -> dict[int, str]:
    return {place: flaw for place, text in texts.items() if (flaw := flaw_in(text)) is not None}


async def _flaw_in_large(lane: HeavyWork, holder: TenantId, text: Raw) -> str | None:
    scan = PayloadScan(is_object=False)
    try:
        for piece in in_pieces(memoryview(text)):
            await lane.run(holder, partial(scan.feed, piece), len(piece))
        await lane.run(holder, scan.finish)
    except InvalidRequest as error:
        return error.message
    return None
