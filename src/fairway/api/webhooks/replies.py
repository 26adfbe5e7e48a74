"""Replies about webhooks, the same for a tenant's and for those that alarms are sent to.

Whose a webhook is was settled before: by its key, which names owner and webhook. One of a tenant in
several shards has a key in each of them, and is told as one.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import filters
from fairway.api.endpoint import Reply
from fairway.api.http.decoding import decoded, json_reply
from fairway.api.webhooks.views import cursor_of, delivery_view, made_view, place_before
from fairway.core.audit import Actor
from fairway.core.errors import InvalidRequest
from fairway.core.webhooks.webhook import STATE_BY_LABEL, Delivery, Webhook, WebhookKey
from fairway.services.platform import Platform
from fairway.wire.webhooks import DeliveryList, RotateRequest, WebhookSecret

SECRET_EXAMPLE = "whsec_c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0IHNlYzE="
ROTATED = Reply(
    200,
    "The new secret.",
    WebhookSecret,
    {"secret": SECRET_EXAMPLE, "old_secret_until": "2026-01-31T13:00:00Z"},
)


def made(
    platform: Platform, webhook: Webhook, folder: str, also: Sequence[Webhook] = ()
) -> Response:
    """With its secret, which is shown this once."""
    reply = json_reply(made_view(webhook, platform.store_clock.now(), also), 201)
    reply.headers["location"] = f"{folder}/{webhook.key.id}"
    return reply


async def rotated(
    request: Request, platform: Platform, keys: Sequence[WebhookKey], actor: Actor
) -> Response:
    wanted = await decoded(request, RotateRequest, if_empty=b"{}")
    key, *also = keys
    rotate = platform.outbound.webhooks.rotate
    secret, until = await rotate(key, wanted.overlap_seconds, actor, also=also)
    return json_reply(WebhookSecret(secret=secret, old_secret_until=until))


async def deliveries(request: Request, platform: Platform, keys: Sequence[WebhookKey]) -> Response:
    """A page, newest first; whoever asks has checked the names of its parameters."""
    asked = request.query_params
    limit, before = filters.limit(asked.get("limit")), place_before(asked.get("cursor"))
    state, webhooks, found = (
        _state_of(asked.get("state")),
        platform.outbound.webhooks,
        list[Delivery](),
    )
    for one in await webhooks.of_parts(keys):
        found += await webhooks.deliveries(one.key, before, state, limit + 1)
    found.sort(key=_newest_first)
    shown = found[: _cut(found, limit)]
    cursor = cursor_of(shown[-1]) if len(found) > len(shown) else None
    views = [delivery_view(one) for one in shown]
    return json_reply(DeliveryList(deliveries=views, next_cursor=cursor))


def _newest_first(one: Delivery) -> tuple[float, int]:
    return -one.created_at.timestamp(), -one.number


def _cut(found: Sequence[Delivery], limit: int) -> int:
    """Where a page ends: not between two of different parts at one place, which a cursor is."""
    end = min(limit, len(found))
    while 0 < end < len(found) and _newest_first(found[end]) == _newest_first(found[end - 1]):
        end += 1
    return end


def _state_of(text: str | None) -> int | None:
    if text is None:
        return None
    if text not in STATE_BY_LABEL:
        raise InvalidRequest(
            f"There is no state {text[:32]!r}; there are {', '.join(STATE_BY_LABEL)}.",
            field="state",
        )
    return STATE_BY_LABEL[text]
