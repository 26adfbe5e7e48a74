"""What operators send and get about pools."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from fairway.wire.doc import doc
from fairway.wire.messages import END, PoolName

LABEL_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.:/=-]{0,127}" + END
Label = Annotated[str, Meta(pattern=LABEL_PATTERN, examples=["gpu"])]
Seconds = Annotated[float, Meta(ge=1, le=24 * 3600)]


class PoolTerms(Struct, kw_only=True, forbid_unknown_fields=True):
    """How a pool runs its jobs; what is left out has the value of the medium pool."""

    slots: Annotated[
        int,
        Meta(ge=1, le=100_000),
        doc("Slots that a worker offers there unless it says otherwise."),
    ] = 8
    lease_mode: Annotated[
        Literal["lazy", "durable"],
        doc("durable: on disk before the worker hears of it. lazy: only if the run lasts."),
    ] = "durable"
    lease_seconds: Annotated[
        Seconds, doc("A worker silent for this long has lost its jobs there.")
    ] = 300.0
    run_mode: Annotated[
        Literal["loop", "thread", "process"] | None,
        doc("How jobs run that do not say; null: a coroutine in the loop, a function in a thread."),
    ] = None
    checkpoint: Annotated[
        Literal["none", "optional", "expected"],
        doc("Whether jobs keep checkpoints; expected: it is noted when a long one has none."),
    ] = "optional"
    attempts: Annotated[
        int,
        Meta(ge=1, le=10_000),
        doc("Attempts before a failing job is dead, unless its type says otherwise."),
    ] = 3
    pickup_target_seconds: Annotated[
        float,
        Meta(gt=0, le=7 * 24 * 3600),
        doc("How soon a job should start when its tenant has slots free."),
    ] = 5.0
    labels: Annotated[
        list[Label],
        Meta(max_length=32),
        doc("A worker must have all of these for its slots to count."),
    ] = []
    reserved_per_mille: Annotated[
        int, Meta(ge=0, le=950), doc("Part of the slots that floors of tenants may claim together.")
    ] = 800


class PoolView(PoolTerms, kw_only=True):
    """A pool. `fits_seconds` is set for pools of duration, whose job types are measured."""

    name: Annotated[PoolName, doc("The pool's name.")]
    fits_seconds: Annotated[
        float | None, doc("The longest run that belongs in it; null for a pool of resources.")
    ] = None


class PoolList(Struct, kw_only=True):
    """Every pool there is."""

    pools: Annotated[list[PoolView], doc("Every pool.")]
