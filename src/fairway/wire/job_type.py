"""What is said of a job type: by workers in their hello, by operators by hand, and back to people.

What the server keeps of it is `TypeFacts` (`core/job_type.py`). A field of the same name there and
here is carried from one to the other as it is (`api/type_facts.py`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from fairway.wire.doc import doc
from fairway.wire.messages import JobType, PoolName, TimeoutSeconds

ShortText = Annotated[str, Meta(max_length=128)]
AttemptsMax = Annotated[int, Meta(ge=1, le=10_000)]
TypePool = Annotated[PoolName | None, doc("Where its jobs go unless they say otherwise.")]
Dependency = Annotated[ShortText, doc("What it leans on, such as stripe.")]
WarmKey = Annotated[ShortText, doc("Workers that keep this ready are preferred.")]
Version = Annotated[ShortText, doc("Of the handler, for people.")]
PayloadSchema = Annotated[
    dict[str, Any] | None, doc("JSON Schema of the payload, checked when a job is submitted.")
]


class TypeTerms(Struct, kw_only=True, omit_defaults=True):
    """A job type that the worker runs, and how many failures of each class end a job of it."""

    name: Annotated[JobType, doc("The job type.")]
    attempts_max: Annotated[
        AttemptsMax | None,
        doc("Errors of the handler until a job is dead; default 5, 3 or 2 by pool."),
    ] = None
    timeouts_max: Annotated[
        AttemptsMax | None, doc("Time limits passed until it is dead; default 2.")
    ] = None
    resources_max: Annotated[
        AttemptsMax | None, doc("Resource limits passed until it is dead; default 2.")
    ] = None
    dependencies_max: Annotated[
        AttemptsMax | None, doc("Failures of a dependency until it is dead; default 20.")
    ] = None
    deliveries_max: Annotated[
        AttemptsMax | None, doc("Crashes of its worker until it is dead as poison; default 10.")
    ] = None
    pool: TypePool = None
    timeout_ms: Annotated[
        Annotated[int, Meta(ge=1, le=(1 << 31) - 1)] | None,
        doc("The limit of one run, as this worker keeps it."),
    ] = None
    dependency: Dependency = ""
    warm_key: WarmKey = ""
    version: Version = ""
    schema: PayloadSchema = None


class TypeSettings(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is said of a job type; what is left out is not said."""

    pool: TypePool = None
    timeout_seconds: Annotated[
        TimeoutSeconds | None, doc("The limit of one run, as its workers keep it.")
    ] = None
    attempts: Annotated[
        AttemptsMax | None, doc("Attempts before a failing job is dead; null: by its pool.")
    ] = None
    dependency: Dependency = ""
    warm_key: WarmKey = ""
    version: Version = ""
    schema: PayloadSchema = None


class TypeView(TypeSettings, kw_only=True):
    """A job type: what was said of it, and what was measured."""

    name: Annotated[str, doc("The job type.")]
    registered: Annotated[bool, doc("Whether a worker or an operator ever said anything of it.")]
    measured_pool: Annotated[
        PoolName | None, doc("Where the clock says it belongs; beats what was declared.")
    ] = None
    measured_p95_seconds: Annotated[
        float | None, doc("95 % of its runs took no longer, when it was moved.")
    ] = None
    moved_at: Annotated[
        datetime | None, doc("When it was moved; it stays for an hour at least.")
    ] = None


class TypeList(Struct, kw_only=True):
    """Every job type there is, by name."""

    job_types: Annotated[list[TypeView], doc("By name.")]
