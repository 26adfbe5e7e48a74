"""Webhooks over HTTP. What makes a secret is asked once: a repeat would make another."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import msgspec

from fairway.sdk.client.job_calls import JSON
from fairway.sdk.http.transport import NotNow, Question, Transport
from fairway.wire.messages import encode
from fairway.wire.webhooks import (
    DeliveryList,
    DeliveryView,
    ReplayReply,
    ReplayRequest,
    RotateRequest,
    WebhookChange,
    WebhookList,
    WebhookMade,
    WebhookRequest,
    WebhookSecret,
    WebhookView,
)

PATH = "/v1/webhooks"
PAGE = 200

_view = msgspec.json.Decoder(WebhookView).decode
_made = msgspec.json.Decoder(WebhookMade).decode
_list = msgspec.json.Decoder(WebhookList).decode
_secret = msgspec.json.Decoder(WebhookSecret).decode
_delivery = msgspec.json.Decoder(DeliveryView).decode
_deliveries = msgspec.json.Decoder(DeliveryList).decode
_replayed = msgspec.json.Decoder(ReplayReply).decode


class WebhookCalls:
    def __init__(self, transport: Transport, patience_seconds: float) -> None:
        self._transport = transport
        self._patience_seconds = patience_seconds

    async def add(self, wanted: WebhookRequest) -> WebhookMade:
        return _made(await self._once(PATH, wanted))

    async def all(self) -> list[WebhookView]:
        return _list(await self._transport.ask(Question("GET", PATH))).webhooks

    async def get(self, webhook: str) -> WebhookView:
        return _view(await self._transport.ask(Question("GET", _place(webhook))))

    async def change(self, webhook: str, wanted: WebhookChange) -> WebhookView:
        question = Question("PATCH", _place(webhook), encode(wanted), JSON)
        return _view(await self._transport.ask(question))

    async def delete(self, webhook: str) -> None:
        await self._transport.ask(Question("DELETE", _place(webhook)))

    async def rotate(self, webhook: str, wanted: RotateRequest) -> WebhookSecret:
        return _secret(await self._once(f"{_place(webhook)}/rotate", wanted))

    async def test(self, webhook: str) -> DeliveryView:
        return _delivery(await self._transport.ask(Question("POST", f"{_place(webhook)}/test")))

    async def deliveries(self, webhook: str, state: str | None) -> AsyncIterator[DeliveryView]:
        """The newest first, page after page."""
        query, cursor = f"limit={PAGE}" + (f"&state={quote(state)}" if state else ""), ""
        while True:
            path = f"{_place(webhook)}/deliveries?{query}{cursor}"
            page = _deliveries(await self._transport.ask(Question("GET", path)))
            for one in page.deliveries:
                yield one
            if page.next_cursor is None:
                return
            cursor = f"&cursor={quote(page.next_cursor)}"

    async def replay(self, webhook: str, delivery: str) -> DeliveryView:
        path = f"{_place(webhook)}/deliveries/{quote(delivery, safe='')}/replay"
        return _delivery(await self._transport.ask(Question("POST", path)))

    async def replay_since(self, webhook: str, wanted: ReplayRequest) -> ReplayReply:
        question = Question("POST", f"{_place(webhook)}/replay", encode(wanted), JSON)
        return _replayed(await self._transport.ask(question))

    async def _once(self, path: str, wanted: Any) -> bytes:
        question = Question("POST", path, encode(wanted), JSON)
        try:
            return await self._transport.attempt(question, self._patience_seconds)
        except NotNow as not_now:
            raise not_now.error from not_now


def _place(webhook: str) -> str:
    return f"{PATH}/{quote(webhook, safe='')}"
