"""Unique jobs, on the wire."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from fairway.core.unique import WITHIN_MS, WITHIN_MS_MAX
from fairway.wire.doc import doc
from fairway.wire.key_limits import Key

WhileState = Literal["scheduled", "queued", "running", "succeeded", "dead", "cancelled", "expired"]
WHILE_LIVE: tuple[WhileState, ...] = ("scheduled", "queued", "running")


class UniqueRequest(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Of your jobs with this key one is there at a time."""

    key: Annotated[Key, doc("A text of your own: jobs with the same one are the same.")]
    within_seconds: Annotated[
        Annotated[float, Meta(ge=1, le=WITHIN_MS_MAX / 1000)],
        doc("For how long from its submission a job counts; a day, unless told otherwise."),
    ] = WITHIN_MS / 1000
    while_states: Annotated[
        list[WhileState] | None,
        doc("And only in these states; all that are not final, unless told otherwise."),
    ] = None
    on_conflict: Annotated[
        Literal["reject", "return", "replace"],
        doc(
            "Refuse this job (409), answer with the one that is there, or take its place: one that"
            " waits is cancelled as this one is made. One that runs and counts is not replaced"
            " (409), nor one that other jobs of a flow count on."
        ),
    ] = "reject"
    delay_most_seconds: Annotated[
        Annotated[float, Meta(ge=0, le=WITHIN_MS_MAX / 1000)] | None,
        doc(
            "With `replace` and a delay: it is due so long after the first of those that were"
            " replaced one after the other, at the latest."
        ),
    ] = None
