"""Webhooks between the wire and the platform: what is asked for, and how it looks."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from msgspec import UNSET

from fairway.core.errors import InvalidRequest
from fairway.core.events.event_filter import parse_kinds
from fairway.core.events.kinds import KINDS
from fairway.core.events.log_places import shown
from fairway.core.unix_time import from_unix_us, to_unix_us
from fairway.core.webhooks.webhook import (
    Delivery,
    DeliveryState,
    Webhook,
    WebhookTerms,
    shown_url,
)
from fairway.services.registry.principal import Principal
from fairway.wire.webhooks import (
    DeliveryView,
    WebhookChange,
    WebhookMade,
    WebhookRequest,
    WebhookView,
)

_CURSOR = re.compile(r"([0-9]{1,18})_(-?[0-9]{1,18})")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def terms_of(wanted: WebhookRequest, known: Collection[str] = KINDS) -> WebhookTerms:
    """`known`: the kinds that such a webhook can be sent."""
    kinds = _kinds(wanted.kinds, known)
    return WebhookTerms(wanted.url, kinds, _line(wanted.description), wanted.enabled)


def changed(
    wanted: WebhookChange, terms: WebhookTerms, known: Collection[str] = KINDS
) -> WebhookTerms:
    return WebhookTerms(
        terms.url if wanted.url is UNSET else wanted.url,
        terms.kinds if wanted.kinds is UNSET else _kinds(wanted.kinds, known),
        terms.description if wanted.description is UNSET else _line(wanted.description),
        terms.enabled if wanted.enabled is UNSET else wanted.enabled,
    )


def _kinds(wanted: list[str], known: Collection[str]) -> tuple[str, ...]:
    try:
        return parse_kinds(",".join(wanted), known)
    except InvalidRequest as refused:
        raise InvalidRequest(refused.message, field="/kinds") from None


def _line(text: str) -> str:
    if _CONTROL.search(text):
        raise InvalidRequest("A description stands on one line.", field="/description")
    return text


def webhook_view(
    webhook: Webhook, now: datetime, principal: Principal, also: Sequence[Webhook] = ()
) -> WebhookView:
    """As whoever may change it sees it; others see the host of its address only. `also`: the same
    in the other parts of a tenant in several shards."""
    facts = _facts(webhook, now)
    if "operate" not in principal.may:
        facts["url"] = shown_url(webhook.terms.url)
    return WebhookView(**facts | (_of_parts([webhook, *also]) if also else {}))


def _of_parts(webhooks: Sequence[Webhook]) -> dict[str, Any]:
    """Where they differ: what troubles one of them is told."""
    off = [one.disabled_because for one in webhooks if one.disabled_because]
    failing = [one.failing_since for one in webhooks if one.failing_since is not None]
    return {
        "enabled": all(one.terms.enabled for one in webhooks),
        "disabled_because": off[0] if off else None,
        "failing_since": min(failing, default=None),
        "position": shown(tuple(one.position for one in webhooks)),
        "updated_at": max(one.updated_at for one in webhooks),
    }


def made_view(webhook: Webhook, now: datetime, also: Sequence[Webhook] = ()) -> WebhookMade:
    """With its secret: only in the answer to whoever made it."""
    facts = _facts(webhook, now) | (_of_parts([webhook, *also]) if also else {})
    return WebhookMade(secret=webhook.secrets.present, **facts)


def _facts(webhook: Webhook, now: datetime) -> dict[str, Any]:
    terms, secrets = webhook.terms, webhook.secrets
    return {
        "id": webhook.key.id,
        "url": terms.url,
        "kinds": list(terms.kinds),
        "description": terms.description,
        "enabled": terms.enabled,
        "disabled_because": webhook.disabled_because or None,
        "failing_since": webhook.failing_since,
        "position": webhook.position,
        "old_secret_until": secrets.old_until if len(secrets.in_force(now)) > 1 else None,
        "created_at": webhook.created_at,
        "updated_at": webhook.updated_at,
    }


def delivery_view(delivery: Delivery) -> DeliveryView:
    return DeliveryView(
        id=delivery.id,
        kind=delivery.kind,
        position=delivery.number if delivery.number > 0 else None,
        state=DeliveryState(delivery.state).label,
        attempts=delivery.attempts,
        created_at=delivery.created_at,
        next_attempt_at=delivery.next_at,
        last_attempt_at=delivery.last_at,
        last_status=delivery.last_status,
        last_error=delivery.last_error or None,
        body=delivery.body.decode("utf-8", "ignore"),
    )


def cursor_of(delivery: Delivery) -> str:
    return f"{to_unix_us(delivery.created_at)}_{delivery.number}"


def place_before(cursor: str | None) -> tuple[datetime, int] | None:
    if cursor is None:
        return None
    found = _CURSOR.fullmatch(cursor)
    try:
        if found is None:
            raise ValueError
        return from_unix_us(int(found[1])), int(found[2])
    except (ValueError, OverflowError):
        raise InvalidRequest(
            "The cursor is not one of ours.", code="INVALID_CURSOR", field="cursor"
        ) from None
