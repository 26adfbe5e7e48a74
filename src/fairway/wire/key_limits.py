"""Limits by key, on the wire: what a job waits for beside a slot."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from fairway.core.backlog.key_limits import KEY_CHARACTERS_MAX
from fairway.wire.doc import doc

AT_MOST_MAX = 1_000_000
PER_SECONDS_MIN = 0.1
PER_SECONDS_MAX = 24 * 3600

Count = Annotated[int, Meta(ge=1, le=AT_MOST_MAX)]
Key = Annotated[
    str, Meta(min_length=1, max_length=KEY_CHARACTERS_MAX, examples=["report.build/customer=17"])
]


class JobLimit(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """At most so many jobs of yours with this key run at once, or start in any while."""

    key: Annotated[Key, doc("A text of your own; jobs with the same one are counted together.")]
    at_most: Annotated[Count | None, doc("This one starts while fewer run.")] = None
    count: Annotated[
        Count | None, doc("Or: it starts when fewer did within the last per_seconds.")
    ] = None
    per_seconds: Annotated[
        Annotated[float, Meta(ge=PER_SECONDS_MIN, le=PER_SECONDS_MAX)] | None,
        doc("How long that while is."),
    ] = None
