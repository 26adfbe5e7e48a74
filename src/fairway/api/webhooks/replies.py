"""Replies about webhooks, the same for a tenant's and for those that alarms are sent to.

Whose a webhook is was settled before: by its key, which names owner and webhook.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import filters
from fairway.api.endpoint import Reply
from fairway.api.http.decoding import decoded, json_reply
from fairway.api.webhooks.views import cursor_of, delivery_view, made_view, place_before
from fairway.core.audit import Actor
from fairway.core.errors import InvalidRequest
from fairway.core.webhooks.webhook import STATE_BY_LABEL, Webhook, WebhookKey
from fairway.services.platform import Platform
from fairway.wire.webhooks import DeliveryList, RotateRequest, WebhookSecret

SECRET_EXAMPLE = "whsec_c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0IHNlYzE="
ROTATED = Reply(
    200,
    "The new secret.",
    WebhookSecret,
    {"secret": SECRET_EXAMPLE, "old_secret_until": "2026-01-31T13:00:00Z"},
)


def made(platform: Platform, webhook: Webhook, folder: str) -> Response:
    """With its secret, which is shown this once."""
    reply = json_reply(made_view(webhook, platform.store_clock.now()), 201)
    reply.headers["location"] = f"{folder}/{webhook.key.id}"
    return reply


async def rotated(request: Request, platform: Platform, key: WebhookKey, actor: Actor) -> Response:
    wanted = await decoded(request, RotateRequest, if_empty=b"{}")
    webhooks = platform.outbound.webhooks
    secret, until = await webhooks.rotate(key, wanted.overlap_seconds, actor)
    return json_reply(WebhookSecret(secret=secret, old_secret_until=until))


async def deliveries(request: Request, platform: Platform, key: WebhookKey) -> Response:
    """A page, newest first; whoever asks has checked the names of its parameters."""
    asked = request.query_params
    limit, before = filters.limit(asked.get("limit")), place_before(asked.get("cursor"))
    state = _state_of(asked.get("state"))
    found = await platform.outbound.webhooks.deliveries(key, before, state, limit + 1)
    shown = found[:limit]
    cursor = cursor_of(shown[-1]) if len(found) > limit else None
    views = [delivery_view(one) for one in shown]
    return json_reply(DeliveryList(deliveries=views, next_cursor=cursor))


def _state_of(text: str | None) -> int | None:
    if text is None:
        return None
    if text not in STATE_BY_LABEL:
        raise InvalidRequest(
            f"There is no state {text[:32]!r}; there are {', '.join(STATE_BY_LABEL)}.",
            field="state",
        )
    return STATE_BY_LABEL[text]
