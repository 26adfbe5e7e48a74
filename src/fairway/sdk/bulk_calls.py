"""Acts on many jobs over HTTP. To begin one is asked once: a repeat would begin another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import quote

import msgspec

from fairway.core.errors import Conflict
from fairway.sdk.client.job_calls import JSON
from fairway.sdk.http.transport import NotNow, Question, RefusedRepeat, Transport
from fairway.wire.bulk import BulkActionList, BulkActionView, BulkCount, BulkRequest
from fairway.wire.messages import encode

PATH = "/v1/bulk-actions"
LOOK_SECONDS = 0.5

_view = msgspec.json.Decoder(BulkActionView).decode
_list = msgspec.json.Decoder(BulkActionList).decode
_count = msgspec.json.Decoder(BulkCount).decode


class BulkCalls:
    def __init__(self, transport: Transport, patience_seconds: float) -> None:
        self._transport = transport
        self._patience_seconds = patience_seconds

    async def count(self, wanted: BulkRequest) -> BulkCount:
        wanted = msgspec.structs.replace(wanted, dry_run=True)
        return _count(await self._transport.ask(Question("POST", PATH, encode(wanted), JSON)))

    async def start(self, wanted: BulkRequest) -> BulkActionView:
        question = Question("POST", PATH, encode(wanted), JSON)
        try:
            return _view(await self._transport.attempt(question, self._patience_seconds))
        except NotNow as not_now:
            raise not_now.error from not_now

    async def latest(self) -> list[BulkActionView]:
        return _list(await self._transport.ask(Question("GET", PATH))).actions

    async def get(self, action: str) -> BulkActionView:
        return _view(await self._transport.ask(Question("GET", _place(action))))

    async def follow(self, action: str) -> AsyncIterator[BulkActionView]:
        """As it stands, and again whenever it has come further, until it is over."""
        seen: BulkActionView | None = None
        while seen is None or seen.state == "running":
            found = await self.get(action)
            if found != seen:
                seen = found
                yield found
            if found.state == "running":
                await asyncio.sleep(LOOK_SECONDS)

    async def abort(self, action: str) -> BulkActionView:
        """A repeat that finds it aborted found what was asked for."""
        question = Question("POST", f"{_place(action)}/abort", tells_repeats=True)
        try:
            return _view(await self._transport.ask(question))
        except RefusedRepeat as refused:
            found = await self.get(action) if isinstance(refused.error, Conflict) else None
            if found is not None and found.state == "aborted":
                return found
            raise refused.error from None


def _place(action: str) -> str:
    return f"{PATH}/{quote(action, safe='')}"
