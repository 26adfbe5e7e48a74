"""`/v1/webhooks…`: webhooks of the key's tenant. Translates; decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api import filters
from fairway.api.auth import caller_of, part_ids, platform_of, tenant_of
from fairway.api.endpoint import Endpoint, Parameter, Reply, ReplyHeader, path, query
from fairway.api.http.decoding import decoded, json_reply
from fairway.api.jobs.times import checked_ms
from fairway.api.tenant_parts.meant import PART
from fairway.api.webhooks import replies
from fairway.api.webhooks.views import (
    changed,
    delivery_view,
    terms_of,
    webhook_view,
)
from fairway.core.audit import Actor
from fairway.core.errors import InvalidRequest
from fairway.core.tenant import Tenant, several_shards
from fairway.core.webhooks.webhook import (
    STATE_BY_LABEL,
    Webhook,
    WebhookKey,
    part_id,
    place_of,
)
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
    problems=("TOO_MANY_WEBHOOKS", "SEVERAL_SHARDS", *parts.QUICK),
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
    _is_of_all_parts(request, tenant)
    (first, *also), webhooks = part_ids(request, tenant), _webhooks(platform)
    made = await webhooks.add(first, terms_of(wanted), actor, also=also)
    others = list[Webhook]()
    if also:  # what is asked for may fail, and then nobody was told the secret
        _, *others = await webhooks.of_parts(webhooks.keys_of([first, *also], made.key.id))
    return replies.made(platform, made, "/v1/webhooks", others)


@Endpoint(
    "GET /v1/webhooks",
    keys=("tenant",),
    reply=Reply(200, "All of them.", WebhookList, {"webhooks": [VIEW_EXAMPLE]}),
    problems=parts.QUICK,
)
async def list_webhooks(
    request: Request, platform: Platform, principal: Principal, tenant: Tenant
) -> Response:
    """List webhooks

    There are a few at most, so they come on one page. With several shards each stands for one in
    every shard.
    """
    now = platform.store_clock.now()
    parts_meant = part_ids(request, tenant)
    found: dict[str, list[Webhook]] = {}  # one of several parts is known by its first's id
    for one in parts_meant:
        for webhook in await _webhooks(platform).all(one):
            known = part_id(webhook.key.id, 0) if len(parts_meant) > 1 else webhook.key.id
            found.setdefault(known, []).append(webhook)
    views = [webhook_view(one, now, principal, also) for one, *also in found.values()]
    return json_reply(WebhookList(webhooks=views))


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
    platform, keys = _places_of(request)
    return _show(request, await _webhooks(platform).of_parts(keys))


@Endpoint(
    "PATCH /v1/webhooks/{id}",
    keys=("tenant",),
    parameters=(ID,),
    body=WebhookChange,
    body_example={"enabled": False},
    reply=_SHOWN,
    problems=("NOT_FOUND", "SEVERAL_SHARDS", *parts.QUICK),
)
async def change_webhook(request: Request, actor: Actor) -> Response:
    """Change a webhook

    What is left out stays. Switched on again, it hears of what happens from then on; a replay
    brings what it missed.
    """
    _is_of_all_parts(request, tenant_of(request))
    platform, (key, *also) = _places_of(request)
    wanted = await decoded(request, WebhookChange)
    webhooks = _webhooks(platform)
    await webhooks.change(key, partial(changed, wanted), actor, also=also)
    return _show(request, await webhooks.of_parts([key, *also]))


@Endpoint(
    "POST /v1/webhooks/{id}/rotate",
    keys=("tenant",),
    parameters=(ID,),
    body=RotateRequest,
    body_example={"overlap_seconds": 3600},
    reply=replies.ROTATED,
    problems=("NOT_FOUND", "SEVERAL_SHARDS", *parts.QUICK),
)
async def rotate_webhook_secret(request: Request, actor: Actor) -> Response:
    """Rotate the secret of a webhook

    For a day, unless told otherwise, every delivery has two signatures: of the new secret and of
    the one before. So a receiver can change over whenever it likes.
    """
    _is_of_all_parts(request, tenant_of(request))
    platform, keys = _places_of(request)
    return await replies.rotated(request, platform, keys, actor)


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
    platform, (key, *_) = _places_of(request)
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
    platform, keys = _places_of(request)
    known = [parameter.name for parameter in PAGE]
    for name in request.query_params:
        if name not in known:
            raise InvalidRequest(
                f"There is no parameter {name[:64]!r}; there are {', '.join(known)}.", field=name
            )
    return await replies.deliveries(request, platform, keys)


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
    platform, keys = _places_of(request)
    delivery = request.path_params["delivery"]
    key = keys[min(place_of(delivery), len(keys) - 1)]  # one that leads nowhere is not found
    found = await _webhooks(platform).replay(key, delivery)
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
    platform, keys = _places_of(request)
    wanted = await decoded(request, ReplayRequest)
    checked_ms(wanted.since, "/since")
    webhooks = _webhooks(platform)
    replay = webhooks.replay_all if wanted.which == "all" else webhooks.replay_failed
    found = [await replay(one.key, wanted.since) for one in await webhooks.of_parts(keys)]
    counts = [one.deliveries for one in found if one.deliveries is not None]
    is_more = any(one.is_more for one in found)
    replayed = sum(counts) if counts else None
    return json_reply(ReplayReply(replayed=replayed, is_more=is_more), 202)


@Endpoint(
    "DELETE /v1/webhooks/{id}",
    keys=("tenant",),
    parameters=(ID,),
    reply=Reply(204, "The webhook is gone."),
    problems=("NOT_FOUND", "SEVERAL_SHARDS", *parts.QUICK),
)
async def delete_webhook(request: Request, actor: Actor) -> Response:
    """Delete a webhook

    With the list of its deliveries, and what was still on its way.
    """
    _is_of_all_parts(request, tenant_of(request))
    platform, (key, *also) = _places_of(request)
    await _webhooks(platform).remove(key, actor, also=also)
    return Response(status_code=204)


def _webhooks(platform: Platform) -> Webhooks:
    return platform.outbound.webhooks


def _is_of_all_parts(request: Request, tenant: Tenant) -> None:
    """What changes it does so in every shard: one that differed could not be told as one."""
    if PART.decode() in request.headers and (tenant.parts or tenant.part_of is not None):
        raise several_shards("A webhook is one for all shards: leave the header Fairway-Part out.")


def _places_of(request: Request) -> tuple[Platform, list[WebhookKey]]:
    """Where it is: of a tenant in several shards in each part, or in the one that is named."""
    platform, parts_meant = platform_of(request), part_ids(request, tenant_of(request))
    return platform, _webhooks(platform).keys_of(parts_meant, request.path_params["id"])


def _show(request: Request, found: Sequence[Webhook]) -> Response:
    now, (webhook, *also) = platform_of(request).store_clock.now(), found
    return json_reply(webhook_view(webhook, now, caller_of(request), also))
