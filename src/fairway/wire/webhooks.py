"""Webhooks on the wire: what a tenant says of one, how it looks, and what became of deliveries."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from fairway.wire.doc import doc
from fairway.wire.messages import Moment

DAY_SECONDS = 24 * 3600

Url = Annotated[str, Meta(min_length=8, max_length=2048, examples=["https://example.com/hooks"])]
Kind = Annotated[str, Meta(min_length=1, max_length=64, examples=["job.dead"])]
Kinds = Annotated[list[Kind], Meta(max_length=50)]
Description = Annotated[str, Meta(max_length=256)]
OverlapSeconds = Annotated[float, Meta(ge=0, le=7 * DAY_SECONDS)]
DeliveryStateName = Literal["waiting", "delivered", "failed"]

URL = doc("Where events are sent, by POST. https, and an address of the public internet.")
SHOWN_URL = doc(
    "Where events are sent, by POST. Of a key that may not change it (`operate`) the host alone is"
    " seen: what follows may be a secret."
)
KINDS = doc(
    "Which events: job.dead, job.*, circuit.opened, …; none: all. With one of job.* what becomes of"
    " your jobs is written to your log from then on."
)
DESCRIPTION = doc("For people.")
ENABLED = doc("Whether anything is sent. Switched on again, it hears of what happens from then on.")
SECRET = doc("Signs every delivery. Shown here and never again: keep it where your receiver is.")
OLD_SECRET_UNTIL = doc("Until then every delivery is signed with the secret before as well.")


class WebhookRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Where to send which events."""

    url: Annotated[Url, URL]
    kinds: Annotated[Kinds, KINDS] = []
    description: Annotated[Description, DESCRIPTION] = ""
    enabled: Annotated[bool, ENABLED] = True


class WebhookChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is left out stays as it is."""

    url: Annotated[Url | UnsetType, URL] = UNSET
    kinds: Annotated[Kinds | UnsetType, KINDS] = UNSET
    description: Annotated[Description | UnsetType, DESCRIPTION] = UNSET
    enabled: Annotated[bool | UnsetType, ENABLED] = UNSET


class WebhookView(Struct, kw_only=True):
    """A webhook as it stands."""

    id: Annotated[str, doc("Its id.")]
    url: Annotated[str, SHOWN_URL]
    kinds: Annotated[list[str], KINDS]
    description: Annotated[str, DESCRIPTION]
    enabled: Annotated[bool, ENABLED]
    disabled_because: Annotated[
        str | None, doc("Why the platform switched it off; null when it did not.")
    ]
    failing_since: Annotated[
        datetime | None, doc("Since when no call went well; null when the last one did.")
    ]
    position: Annotated[
        int | str,
        doc(
            "How far it has come in your log of events; with several shards a text with a number"
            " for each."
        ),
    ]
    old_secret_until: Annotated[datetime | None, OLD_SECRET_UNTIL]
    created_at: Annotated[datetime, doc("When it was made.")]
    updated_at: Annotated[datetime, doc("When it was last changed.")]


class WebhookMade(WebhookView, kw_only=True):
    """A new webhook, with its secret."""

    secret: Annotated[str, SECRET]


class WebhookList(Struct, kw_only=True):
    """All webhooks of the tenant."""

    webhooks: Annotated[list[WebhookView], doc("The oldest first.")]


class RotateRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """How the secret is replaced."""

    overlap_seconds: Annotated[
        OverlapSeconds,
        doc("So long the secret before signs as well; 0: it is worth nothing from now on."),
    ] = DAY_SECONDS


class WebhookSecret(Struct, kw_only=True):
    """The new secret."""

    secret: Annotated[str, SECRET]
    old_secret_until: Annotated[datetime | None, OLD_SECRET_UNTIL]


class DeliveryView(Struct, kw_only=True):
    """One event on its way to a webhook, or what became of it."""

    id: Annotated[str, doc("Its webhook-id: the same at every try, and at a replay.")]
    kind: Annotated[str, doc("Of the event.")]
    position: Annotated[int | None, doc("Of the event in your log; null for a test.")]
    state: Annotated[str, doc("waiting, delivered or failed.")]
    attempts: Annotated[int, doc("Calls so far.")]
    created_at: Annotated[datetime, doc("When it was written down.")]
    next_attempt_at: Annotated[
        datetime | None, doc("Not before then; later while the receiver fails.")
    ]
    last_attempt_at: Annotated[datetime | None, doc("When it was last called.")]
    last_status: Annotated[int | None, doc("Of the last reply; null when there was none.")]
    last_error: Annotated[str | None, doc("Why the last call did not go well, as a sentence.")]
    body: Annotated[str, doc("What is sent: JSON; of a long one the beginning.")] = ""


class DeliveryList(Struct, kw_only=True):
    """Deliveries of one webhook, newest first; `next_cursor` is null on the last page."""

    deliveries: Annotated[list[DeliveryView], doc("Newest first.")]
    next_cursor: Annotated[str | None, doc("Ask for the next page with it.")] = None


class ReplayRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which events are sent again."""

    since: Annotated[Moment, doc("From this moment on.")]
    which: Annotated[
        Literal["failed", "all"],
        doc(
            "failed: deliveries that were given up. all: every event of your log since then that"
            " the webhook wants, also those of a time when it was switched off."
        ),
    ] = "failed"


class ReplayReply(Struct, kw_only=True):
    """How much is sent again."""

    replayed: Annotated[int | None, doc("Deliveries; null for all: they are counted as they go.")]
    is_more: Annotated[bool, doc("Whether there is more; ask again.")]
