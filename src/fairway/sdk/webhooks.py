"""Webhooks for programs: make and look after them; and, on the other side, know a true delivery."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec
from msgspec import UNSET

from fairway.core.errors import Refused
from fairway.core.webhooks.signing import is_signed
from fairway.sdk.client.handle import blocking_run as run
from fairway.sdk.durations import Duration, seconds_of
from fairway.wire.webhooks import (
    DeliveryView,
    ReplayReply,
    ReplayRequest,
    RotateRequest,
    WebhookChange,
    WebhookMade,
    WebhookRequest,
    WebhookSecret,
    WebhookView,
)

if TYPE_CHECKING:
    from fairway.sdk.client.client import Client
    from fairway.sdk.webhook_calls import WebhookCalls


class HasClient(Protocol):
    """An app: its client is made when it is first needed."""

    @property
    def client(self) -> Client: ...


class WebhookRefused(Refused):
    """This is no delivery of ours, or an old one."""

    code = "WEBHOOK_REFUSED"


class Webhooks:
    """Receivers of this tenant's events, as `app.webhooks`. With an `a` in front, each call is one
    to await."""

    def __init__(self, app: HasClient) -> None:
        self._app = app

    @property
    def _calls(self) -> WebhookCalls:
        return self._app.client.webhooks

    async def aadd(
        self, url: str, kinds: Sequence[str] = (), *, description: str = ""
    ) -> WebhookMade:
        wanted = WebhookRequest(url=url, kinds=list(kinds), description=description)
        return await self._calls.add(wanted)

    def add(self, url: str, kinds: Sequence[str] = (), *, description: str = "") -> WebhookMade:
        """Send events there from now on. Its `secret` is shown here and never again."""
        return run(self.aadd(url, kinds, description=description))

    async def aall(self) -> list[WebhookView]:
        return await self._calls.all()

    def all(self) -> list[WebhookView]:
        """All of them, the oldest first."""
        return run(self.aall())

    async def aget(self, webhook: str) -> WebhookView:
        return await self._calls.get(webhook)

    def get(self, webhook: str) -> WebhookView:
        """One by its id."""
        return run(self.aget(webhook))

    async def achange(
        self,
        webhook: str,
        *,
        url: str | None = None,
        kinds: Sequence[str] | None = None,
        description: str | None = None,
        enabled: bool | None = None,
    ) -> WebhookView:
        wanted = WebhookChange(
            url=UNSET if url is None else url,
            kinds=UNSET if kinds is None else [*kinds],
            description=UNSET if description is None else description,
            enabled=UNSET if enabled is None else enabled,
        )
        return await self._calls.change(webhook, wanted)

    def change(
        self,
        webhook: str,
        *,
        url: str | None = None,
        kinds: Sequence[str] | None = None,
        description: str | None = None,
        enabled: bool | None = None,
    ) -> WebhookView:
        """What is left out stays as it is."""
        work = self.achange(webhook, url=url, kinds=kinds, description=description, enabled=enabled)
        return run(work)

    async def adelete(self, webhook: str) -> None:
        await self._calls.delete(webhook)

    def delete(self, webhook: str) -> None:
        """With what was still on its way."""
        run(self.adelete(webhook))

    async def arotate(self, webhook: str, overlap: Duration = "1d") -> WebhookSecret:
        wanted = RotateRequest(overlap_seconds=seconds_of(overlap))
        return await self._calls.rotate(webhook, wanted)

    def rotate(self, webhook: str, overlap: Duration = "1d") -> WebhookSecret:
        """A new secret; for so long the one before signs as well."""
        return run(self.arotate(webhook, overlap))

    async def atest(self, webhook: str) -> DeliveryView:
        return await self._calls.test(webhook)

    def test(self, webhook: str) -> DeliveryView:
        """Send it an event `webhook.test`."""
        return run(self.atest(webhook))

    def adeliveries(self, webhook: str, state: str | None = None) -> AsyncIterator[DeliveryView]:
        return self._calls.deliveries(webhook, state)

    def deliveries(self, webhook: str, state: str | None = None) -> Iterator[DeliveryView]:
        """What was sent, what waits, what was given up; newest first."""
        from fairway.sdk.client.blocking import iterate

        return iterate(self.adeliveries(webhook, state))

    async def areplay(self, webhook: str, delivery: str) -> DeliveryView:
        return await self._calls.replay(webhook, delivery)

    def replay(self, webhook: str, delivery: str) -> DeliveryView:
        """Send one delivery again, under the same id."""
        return run(self.areplay(webhook, delivery))

    async def areplay_since(
        self, webhook: str, since: datetime, which: Literal["failed", "all"] = "failed"
    ) -> ReplayReply:
        return await self._calls.replay_since(webhook, ReplayRequest(since=since, which=which))

    def replay_since(
        self, webhook: str, since: datetime, which: Literal["failed", "all"] = "failed"
    ) -> ReplayReply:
        """Send again what was given up since then, or all that the log has."""
        return run(self.areplay_since(webhook, since, which))


def verify_webhook(
    secret: str | Sequence[str],
    headers: Mapping[str, str],
    body: bytes,
    *,
    tolerance: Duration = "5m",
) -> dict[str, Any]:
    """The event of a delivery that is ours, whole and new; else WebhookRefused.

    For receivers: `secret` is the webhook's (several while it is replaced), `headers` and `body`
    are those of the request, the body as it came. Remember `webhook-id` for as long as you like:
    a delivery may come more than once. ValueError where there is no secret to check with.
    """
    secrets = [secret] if secret is None or isinstance(secret, str) else [*secret]
    if not secrets or not all(isinstance(one, str) and one for one in secrets):
        raise ValueError("verify_webhook needs the webhook's secret (whsec_…): it was given none.")
    given = {name.lower(): value for name, value in headers.items()}
    message, sent = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    if not (message and sent.isascii() and sent.isdigit() and len(sent) < 16):
        raise WebhookRefused("webhook-id or webhook-timestamp is missing.")
    if abs(time.time() - int(sent)) > seconds_of(tolerance):
        raise WebhookRefused("It was sent too long ago, or a clock is wrong.")
    if not is_signed(given.get("webhook-signature", ""), secrets, message, int(sent), body):
        raise WebhookRefused("No signature is of this secret.")
    event: dict[str, Any] = msgspec.json.decode(body)
    return event
