"""A tenant's log of events on the wire, and what is asked for it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from fairway.wire.doc import doc

Position = Annotated[int, Meta(ge=0, le=(1 << 53) - 1)]
Place = Annotated[str, Meta(max_length=400)]  # of a tenant in several shards
SubscriptionName = Annotated[str, Meta(min_length=1, max_length=64)]
Words = Annotated[str, Meta(max_length=10_000)]


class EventView(Struct, kw_only=True, omit_defaults=True):
    """One thing that happened. Small facts only: no payload, no result, no text of an error."""

    position: Annotated[
        int, doc("1, 2, 3 … in your own log, without gaps; with several shards, in that of one.")
    ]
    at: Annotated[datetime, doc("When it happened, by the store's clock.")]
    kind: Annotated[str, doc("Such as job.succeeded or circuit.opened.")]
    job: Annotated[str | None, doc("The job that it is about, if it is about one.")]
    subject: Annotated[str, doc("What it is about: the job's type, a pool, a job.")]
    data: Annotated[
        dict[str, Any],
        doc("Those of state, attempt, pool, ran_ms, due_at, detail (a sentence) that there are."),
    ]
    part: Annotated[
        int | None, doc("With several shards: in the log of which one it stands, from 0 on.")
    ] = None
    cursor: Annotated[
        str | None,
        doc("With several shards, oldest first: `after`, to go on behind this event. Opaque."),
    ] = None


class EventList(Struct, kw_only=True):
    """Some events in order, and where to look on."""

    events: Annotated[list[EventView], doc("Oldest first; with `order=newest` the other way.")]
    cursor: Annotated[
        int | str,
        doc(
            "How far was looked: ask on with it as `after`. It moves even where the filters let"
            " nothing through, and stays where it was at the end of the log. With several shards"
            " it is a text. Opaque."
        ),
    ]
    trimmed_to: Annotated[
        int | str,
        doc(
            "Positions up to this one are gone, past their retention; 0 for none. With several"
            " shards a text with a number for each, `0.0.17.0`."
        ),
    ]
    has_more: Annotated[bool, doc("Whether the log goes on in this direction at the moment.")]
    end: Annotated[
        int | str, doc("Where the log ends: `after`, to hear of what comes from then on.")
    ]


class EventSettings(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is written to your log beside the notices of the platform."""

    job_events: Annotated[
        bool, doc("What becomes of every job that you submit from now on: job.accepted and so on.")
    ]


class SocketKey(Struct, forbid_unknown_fields=True):
    """The first message on a socket that was opened without a key."""

    authorize: Annotated[str, doc("Your API key.")]


class SocketRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a client asks for on a socket: one of `subscribe` and `unsubscribe`."""

    subscribe: Annotated[SubscriptionName | None, doc("A name of your own for it.")] = None
    unsubscribe: Annotated[SubscriptionName | None, doc("The name of one that is to end.")] = None
    after: Annotated[
        Position | Place | None, doc("Where to begin, as a cursor; left out: from now on.")
    ] = None
    kind: Annotated[
        Words | None, doc("One or more kinds, with commas between; `job.*` for all of a noun.")
    ] = None
    type: Annotated[Words | None, doc("One or more job types, with commas between.")] = None
    job: Annotated[str | None, doc("Events of this job alone.")] = None
