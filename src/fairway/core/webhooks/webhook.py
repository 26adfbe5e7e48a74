"""A webhook, and one delivery to it: an event on its way to a receiver of the tenant's choice."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from enum import IntEnum
from typing import NamedTuple

from fairway.core.ids import ShardId, TenantId

_HOST = re.compile(r"[a-z]+://[^/?#]*", re.IGNORECASE)
_DELIVERY = re.compile(r"msg_([0-9a-f]{32})_(t?)([1-9][0-9]{0,17})")


class WebhookKey(NamedTuple):
    shard: ShardId
    tenant: TenantId
    id: str  # a UUID in its canonical form


def part_id(webhook: str, place: int) -> str:
    """The id of a webhook in one part of a tenant in several shards. Each part numbers its own
    events, so deliveries of two parts differ by it; people know it by that of the first."""
    return f"{webhook[:-1]}{place:x}"


class WebhookTerms(NamedTuple):
    """What its tenant says of it."""

    url: str
    kinds: tuple[str, ...]  # as `parse_kinds` has them; empty: all
    description: str
    enabled: bool


def shown_url(url: str) -> str:
    """For whoever may only look: what stands behind a receiver's host may be a secret. Two that
    differ look different."""
    found = _HOST.match(url)
    host = found[0] if found else ""
    mark = hashlib.sha256(url.encode()).hexdigest()[:8]
    return url if url in (host, f"{host}/") else f"{host}/…{mark}"


class Secrets(NamedTuple):
    """What it is signed with. While one is replaced, the old one signs beside it."""

    present: str
    old: str | None = None
    old_until: datetime | None = None

    def in_force(self, now: datetime) -> tuple[str, ...]:
        """The newest first."""
        if self.old is not None and self.old_until is not None and now < self.old_until:
            return (self.present, self.old)
        return (self.present,)

    def __repr__(self) -> str:
        """None of them in a log, whatever is printed."""
        return "Secrets(…)"


class Webhook(NamedTuple):
    """As it stands in the store."""

    key: WebhookKey
    terms: WebhookTerms
    secrets: Secrets
    position: int  # up to which the tenant's log is written down for it
    failures: int  # in a row, of calls
    failing_since: datetime | None
    disabled_because: str  # a sentence, when it was the platform that did
    created_at: datetime
    updated_at: datetime


class DeliveryState(IntEnum):
    WAITING = 0  # for its first try, or for another
    DELIVERED = 1
    FAILED = 2  # given up; a replay tries again

    @property
    def label(self) -> str:
        return self.name.lower()


STATE_BY_LABEL = {state.label: state for state in DeliveryState}


class Delivery(NamedTuple):
    """One event for one webhook."""

    webhook: str
    number: int  # the event's position; below zero: a test, which stands in no log
    kind: str
    state: int
    attempts: int
    next_at: datetime | None  # while it waits
    created_at: datetime
    last_at: datetime | None
    last_status: int | None  # of the receiver's reply; None: there was none
    last_error: str  # a sentence; empty when it went well
    body: bytes  # what is sent, or its beginning

    @property
    def id(self) -> str:
        return delivery_id(self.webhook, self.number)


def delivery_id(webhook: str, number: int) -> str:
    """Its `webhook-id`: the same at every try, and at a replay. Without a dot, which signatures
    use between the parts of what they sign."""
    test = "t" if number < 0 else ""
    return f"msg_{webhook.replace('-', '')}_{test}{abs(number)}"


def place_of(delivery: str) -> int:
    """The part that a delivery's id leads to, of a tenant in several shards."""
    found = _DELIVERY.fullmatch(delivery)
    return 0 if found is None else int(found[1][-1], 16)


def number_of(delivery: str, webhook: str) -> int | None:
    """The number in a delivery's id; None for a text that is no id, or of another webhook."""
    found = _DELIVERY.fullmatch(delivery)
    if found is None or found[1] != webhook.replace("-", ""):
        return None
    return -int(found[3]) if found[2] else int(found[3])
