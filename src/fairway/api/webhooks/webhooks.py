"""`/v1/webhooks…`: webhooks of the key's tenant. Translates; decides nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api import filters
from fairway.api.auth import caller_of, platform_of, tenant_of
from fairway.api.endpoint import Endpoint, Parameter, Reply, ReplyHeader, path, query
from fairway.api.http.decoding import decoded, json_reply
from fairway.api.jobs.times import checked_ms
from fairway.api.webhooks import replies
from fairway.api.webhooks.views import (
    changed,
    delivery_view,
    terms_of,
    webhook_view,
)
from fairway.core.audit import Actor
from fairway.core.errors import InvalidRequest
from fairway.core.tenant import Tenant
from fairway.core.webhooks.webhook import STATE_BY_LABEL, Webhook, WebhookKey
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal
from fairway.services.webhooks.webhooks import Webhooks
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
    WebhookView,
)

_ID = "0b9c1f6e-5a1d-4c53-9a39-1d1f2d3c4b5a"
_DELIVERY_ID = f"msg_{_ID.replace('-', '')}_4711"
ID = path("id", "The webhook's id.", _ID, "$WEBHOOK")
DELIVERY = path(
    "delivery", "The delivery's id, as in its header `webhook-id`.", _DELIVERY_ID, "$DELIVERY"
)
_LOCATION = ReplyHeader("Location", "Where to ask about it.", f"/v1/webhooks/{_ID}")
_STATES = {"type": "string", "enum": list(STATE_BY_LABEL)}
PAGE: tuple[Parameter, ...] = (
    query("state", "Only of this state.", "failed", schema=_STATES),
    replace(filters.named("limit")[0], about="Deliveries in one page."),
    query("cursor", "`next_cursor` of the page before. Opaque.", "1769860800000000_4711"),
)
_WANTED: dict[str, Any] = {
    "url": "https://hooks.example.com/fairway",
    "kinds": ["job.dead", "circuit.*"],
    "description": "pages the team",
}
VIEW_EXAMPLE: dict[str, Any] = _WANTED | {
    "id": _ID,
    "enabled": True,
    "disabled_because": None,
    "failing_since": None,
    "position": 4711,
    "old_secret_until": None,
    "created_at": "2026-01-31T12:00:00Z",
    "updated_at": "2026-01-31T12:00:00Z",
}
DELIVERY_EXAMPLE: dict[str, Any] = {
    "id": _DELIVERY_ID,
    "kind": "job.dead",
    "position": 4711,
    "state": "failed",
    "attempts": 11,
    "created_at": "2026-01-31T12:00:00Z",
    "next_attempt_at": None,
    "last_attempt_at": "2026-02-03T12:00:00Z",
    "last_status": 503,
    "last_error": "The receiver answered 503.",
    "body": '{"type":"job.dead","timestamp":"2026-01-31T12:00:00Z","data":{"position":4711}}',
}
_SHOWN = Reply(200, "The webhook.", WebhookView, VIEW_EXAMPLE)
_SENT = Reply(202, "It is on its way.", DeliveryView, DELIVERY_EXAMPLE | {"state": "waiting"})


@Endpoint(
    "POST /v1/webhooks",
    keys=("tenant",),
    body=WebhookRequest,
    body_example=_WANTED,
    reply=Reply(
        201,
        "The new webhook, with its secret.",
        WebhookMade,
        VIEW_EXAMPLE | {"secret": replies.SECRET_EXAMPLE},
        headers=(_LOCATION,),
    ),
    problems=("TOO_MANY_WEBHOOKS", *parts.QUICK),
)
async def add_webhook(
    request: Request, platform: Platform, tenant: Tenant, actor: Actor
) -> Response:
    """Make a webhook

    Events of your log are sent to it from now on, signed by Standard Webhooks. The secret is shown
    in this answer and never again. The page WEBHOOKS in the documentation tells all about
    signatures, retries and what may be an address.
    """
    wanted = await decoded(request, WebhookRequest)
    made = await _webhooks(platform).add(tenant.id, terms_of(wanted), actor)
    return replies.made(platform, made, "/v1/webhooks")


@Endpoint(
    "GET /v1/webhooks",
    keys=("tenant",),
    reply=Reply(200, "All of them.", WebhookList, {"webhooks": [VIEW_EXAMPLE]}),
    problems=parts.QUICK,
)
async def list_webhooks(platform: Platform, principal: Principal, tenant: Tenant) -> Response:
    """List webhooks

    There are a few at most, so they come on one page.
    """
    now = platform.store_clock.now()
    found = await _webhooks(platform).all(tenant.id)
    return json_reply(WebhookList(webhooks=[webhook_view(one, now, principal) for one in found]))


@Endpoint(
    "GET /v1/webhooks/{id}",
    keys=("tenant",),
    parameters=(ID,),
    reply=_SHOWN,
    problems=("NOT_FOUND", *parts.QUICK),
)
async def get_webhook(request: Request) -> Response:
    """Get a webhook

    Without its secret.
    """
    platform, key = _place_of(request)
    return _show(request, await _webhooks(platform).read(key))


@Endpoint(
    "PATCH /v1/webhooks/{id}",
    keys=("tenant",),
    parameters=(ID,),
    body=WebhookChange,
    body_example={"enabled": False},
    reply=_SHOWN,
    problems=("NOT_FOUND", *parts.QUICK),
)
async def change_webhook(request: Request, actor: Actor) -> Response:
    """Change a webhook

    What is left out stays. Switched on again, it hears of what happens from then on; a replay
    brings what it missed.
    """
    platform, key = _place_of(request)
    wanted = await decoded(request, WebhookChange)
    found = await _webhooks(platform).change(key, partial(changed, wanted), actor)
    return _show(request, found)


@Endpoint(
    "POST /v1/webhooks/{id}/rotate",
    keys=("tenant",),
    parameters=(ID,),
    body=RotateRequest,
    body_example={"overlap_seconds": 3600},
    reply=replies.ROTATED,
    problems=("NOT_FOUND", *parts.QUICK),
)
async def rotate_webhook_secret(request: Request, actor: Actor) -> Response:
    """Rotate the secret of a webhook

    For a day, unless told otherwise, every delivery has two signatures: of the new secret and of
    the one before. So a receiver can change over whenever it likes.
    """
    platform, key = _place_of(request)
    return await replies.rotated(request, platform, key, actor)


@Endpoint(
    "POST /v1/webhooks/{id}/test",
    keys=("tenant",),
    parameters=(ID,),
    reply=_SENT,
    problems=("NOT_FOUND", "CONFLICT", "TOO_MANY_WEBHOOK_TESTS", *parts.QUICK),
)
async def try_webhook(request: Request) -> Response:
    """Try a webhook out

    Sends an event `webhook.test`, which is in no log and goes to this webhook alone. What came of
    it is in the list of deliveries. One that is switched off is not tried: 409.
    """
    platform, key = _place_of(request)
    return json_reply(delivery_view(await _webhooks(platform).test(key)), 202)


@Endpoint(
    "GET /v1/webhooks/{id}/deliveries",
    keys=("tenant",),
    parameters=(ID, *PAGE),
    reply=Reply(
        200,
        "A page of deliveries.",
        DeliveryList,
        {"deliveries": [DELIVERY_EXAMPLE], "next_cursor": None},
    ),
    problems=("INVALID_REQUEST", "INVALID_CURSOR", "NOT_FOUND", *parts.QUICK),
)
async def list_webhook_deliveries(request: Request) -> Response:
    """List deliveries of a webhook

    Newest first: what was sent, what waits for another try, what was given up. Kept as long as
    jobs are, the newest 10 000 of them.
    """
    platform, key = _place_of(request)
    known = [parameter.name for parameter in PAGE]
    for name in request.query_params:
        if name not in known:
            raise InvalidRequest(
                f"There is no parameter {name[:64]!r}; there are {', '.join(known)}.", field=name
            )
    return await replies.deliveries(request, platform, key)


@Endpoint(
    "POST /v1/webhooks/{id}/deliveries/{delivery}/replay",
    keys=("tenant",),
    parameters=(ID, DELIVERY),
    reply=_SENT,
    problems=("NOT_FOUND", *parts.QUICK),
)
async def replay_webhook_delivery(request: Request) -> Response:
    """Send a delivery again

    Whatever became of it, with all its tries, under the same `webhook-id`.
    """
    platform, key = _place_of(request)
    found = await _webhooks(platform).replay(key, request.path_params["delivery"])
    return json_reply(delivery_view(found), 202)


@Endpoint(
    "POST /v1/webhooks/{id}/replay",
    keys=("tenant",),
    parameters=(ID,),
    body=ReplayRequest,
    body_example={"since": "2026-01-31T00:00:00Z", "which": "failed"},
    reply=Reply(202, "They are on their way.", ReplayReply, {"replayed": 17, "is_more": False}),
    problems=("NOT_FOUND", *parts.QUICK),
)
async def replay_webhook(request: Request) -> Response:
    """Send events again since a time

    Those that were given up, at most 1 000 in one call; or all that your log still has since then,
    in order, also of a time when the webhook was switched off. Each keeps its `webhook-id`.
    """
    platform, key = _place_of(request)
    wanted = await decoded(request, ReplayRequest)
    checked_ms(wanted.since, "/since")
    replay = _webhooks(platform).replay_failed
    if wanted.which == "all":
        replay = _webhooks(platform).replay_all
    found = await replay(key, wanted.since)
    return json_reply(ReplayReply(replayed=found.deliveries, is_more=found.is_more), 202)


@Endpoint(
    "DELETE /v1/webhooks/{id}",
    keys=("tenant",),
    parameters=(ID,),
    reply=Reply(204, "The webhook is gone."),
    problems=("NOT_FOUND", *parts.QUICK),
)
async def delete_webhook(request: Request, actor: Actor) -> Response:
    """Delete a webhook

    With the list of its deliveries, and what was still on its way.
    """
    platform, key = _place_of(request)
    await _webhooks(platform).remove(key, actor)
    return Response(status_code=204)


def _webhooks(platform: Platform) -> Webhooks:
    return platform.outbound.webhooks


def _place_of(request: Request) -> tuple[Platform, WebhookKey]:
    platform = platform_of(request)
    key = _webhooks(platform).key_of(tenant_of(request).id, request.path_params["id"])
    return platform, key


def _show(request: Request, webhook: Webhook) -> Response:
    now = platform_of(request).store_clock.now()
    return json_reply(webhook_view(webhook, now, caller_of(request)))
