"""`/v1/alarms/webhooks…`: where operators have alarms sent, called as tenants' webhooks are."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api import filters
from fairway.api.endpoint import Endpoint, Reply, ReplyHeader, path
from fairway.api.http.decoding import decoded, json_reply
from fairway.api.webhooks import replies
from fairway.api.webhooks.views import (
    changed,
    delivery_view,
    terms_of,
    webhook_view,
)
from fairway.api.webhooks.webhooks import (
    DELIVERY_EXAMPLE,
    PAGE,
    VIEW_EXAMPLE,
)
from fairway.core.audit import Actor
from fairway.core.backpressure.connections import STAFF
from fairway.core.events.kinds import OF_ALARMS
from fairway.core.webhooks.webhook import WebhookKey
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal
from fairway.wire.webhooks import (
    DeliveryList,
    DeliveryView,
    RotateRequest,
    WebhookChange,
    WebhookList,
    WebhookMade,
    WebhookRequest,
    WebhookView,
)

_WANTED = {
    "url": "https://hooks.example.com/alarms",
    "kinds": ["alarm.raised"],
    "description": "pages whoever is on call",
}
ID = path("id", "The webhook's id.", VIEW_EXAMPLE["id"], "$ALARM_WEBHOOK")
_VIEW = VIEW_EXAMPLE | _WANTED | {"position": 0}
_SENT = DELIVERY_EXAMPLE | {"kind": "alarm.raised"}


@Endpoint(
    "POST /v1/alarms/webhooks",
    keys=("operator",),
    body=WebhookRequest,
    body_example=_WANTED,
    reply=Reply(
        201,
        "The new webhook, with its secret.",
        WebhookMade,
        _VIEW | {"secret": replies.SECRET_EXAMPLE},
        headers=(
            ReplyHeader("Location", "Where to ask about it.", f"/v1/alarms/webhooks/{_VIEW['id']}"),
        ),
    ),
    problems=("TOO_MANY_WEBHOOKS", *parts.QUICK),
)
async def add_alarm_webhook(request: Request, platform: Platform, actor: Actor) -> Response:
    """Send alarms to an address

    `alarm.raised` and `alarm.ended`, from now on: signed by Standard Webhooks, and tried again
    for days, as tenants' webhooks are. The secret is shown in this answer and never again.
    """
    wanted = await decoded(request, WebhookRequest)
    terms = terms_of(wanted, OF_ALARMS)
    made = await platform.outbound.webhooks.add(STAFF, terms, actor)
    return replies.made(platform, made, "/v1/alarms/webhooks")


@Endpoint(
    "GET /v1/alarms/webhooks",
    keys=("operator",),
    reply=Reply(200, "All of them.", WebhookList, {"webhooks": [_VIEW]}),
    problems=parts.QUICK,
)
async def list_alarm_webhooks(platform: Platform, principal: Principal) -> Response:
    """List where alarms are sent

    There are a few at most, so they come on one page.
    """
    now = platform.store_clock.now()
    found = await platform.outbound.webhooks.all(STAFF)
    return json_reply(WebhookList(webhooks=[webhook_view(one, now, principal) for one in found]))


@Endpoint(
    "GET /v1/alarms/webhooks/{id}",
    keys=("operator",),
    parameters=(ID,),
    reply=Reply(200, "The webhook.", WebhookView, _VIEW),
    problems=("NOT_FOUND", *parts.QUICK),
)
async def get_alarm_webhook(request: Request, platform: Platform, principal: Principal) -> Response:
    """Get one of those where alarms are sent

    Without its secret.
    """
    found = await platform.outbound.webhooks.read(_key(platform, request))
    return json_reply(webhook_view(found, platform.store_clock.now(), principal))


@Endpoint(
    "PATCH /v1/alarms/webhooks/{id}",
    keys=("operator",),
    parameters=(ID,),
    body=WebhookChange,
    body_example={"enabled": False},
    reply=Reply(200, "The webhook.", WebhookView, _VIEW),
    problems=("NOT_FOUND", *parts.QUICK),
)
async def change_alarm_webhook(
    request: Request, platform: Platform, principal: Principal, actor: Actor
) -> Response:
    """Change where alarms are sent

    What is left out stays. Switched on again, it hears of what happens from then on.
    """
    wanted = await decoded(request, WebhookChange)
    change = partial(changed, wanted, known=OF_ALARMS)
    found = await platform.outbound.webhooks.change(_key(platform, request), change, actor)
    return json_reply(webhook_view(found, platform.store_clock.now(), principal))


@Endpoint(
    "POST /v1/alarms/webhooks/{id}/rotate",
    keys=("operator",),
    parameters=(ID,),
    body=RotateRequest,
    body_example={"overlap_seconds": 3600},
    reply=replies.ROTATED,
    problems=("NOT_FOUND", *parts.QUICK),
)
async def rotate_alarm_webhook(request: Request, platform: Platform, actor: Actor) -> Response:
    """Rotate the secret that alarms are signed with

    For a day, unless told otherwise, every message has two signatures: of the new secret and of
    the one before.
    """
    return await replies.rotated(request, platform, [_key(platform, request)], actor)


@Endpoint(
    "POST /v1/alarms/webhooks/{id}/test",
    keys=("operator",),
    parameters=(ID,),
    reply=Reply(202, "It is on its way.", DeliveryView, _SENT | {"state": "waiting"}),
    problems=("NOT_FOUND", "CONFLICT", "TOO_MANY_WEBHOOK_TESTS", *parts.QUICK),
)
async def try_alarm_webhook(request: Request, platform: Platform) -> Response:
    """Try out where alarms are sent

    Sends a `webhook.test` to this webhook alone. What came of it is in the list of deliveries.
    """
    sent = await platform.outbound.webhooks.test(_key(platform, request))
    return json_reply(delivery_view(sent), 202)


@Endpoint(
    "GET /v1/alarms/webhooks/{id}/deliveries",
    keys=("operator",),
    parameters=(ID, *PAGE),
    reply=Reply(
        200, "A page of deliveries.", DeliveryList, {"deliveries": [_SENT], "next_cursor": None}
    ),
    problems=("INVALID_REQUEST", "INVALID_CURSOR", "NOT_FOUND", *parts.QUICK),
)
async def list_alarm_deliveries(request: Request, platform: Platform) -> Response:
    """List what was sent of alarms

    Newest first: what was sent, what waits for another try, what was given up.
    """
    key = _key(platform, request)
    filters.check_names(request.query_params, PAGE)
    return await replies.deliveries(request, platform, [key])


@Endpoint(
    "DELETE /v1/alarms/webhooks/{id}",
    keys=("operator",),
    parameters=(ID,),
    reply=Reply(204, "Nothing is sent there any more."),
    problems=("NOT_FOUND", *parts.QUICK),
)
async def delete_alarm_webhook(request: Request, platform: Platform, actor: Actor) -> Response:
    """Send alarms to an address no more

    With the list of what was sent, and what was still on its way.
    """
    await platform.outbound.webhooks.remove(_key(platform, request), actor)
    return Response(status_code=204)


def _key(platform: Platform, request: Request) -> WebhookKey:
    return platform.outbound.webhooks.key_of(STAFF, request.path_params["id"])
