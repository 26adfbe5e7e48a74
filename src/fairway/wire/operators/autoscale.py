"""How many workers pools should have, as operators, fleets and KEDA read and set it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Raw, Struct

from fairway.core.autoscale.facts import WORKERS_MAX, Mode
from fairway.core.autoscale.rules import DOWN_AFTER_SECONDS_MAX, DOWN_AFTER_SECONDS_MIN
from fairway.wire.doc import doc

OVERRIDE_SECONDS_MAX = 30 * 86_400

Workers = Annotated[int, Meta(ge=0, le=WORKERS_MAX)]

MODE = doc("off: nobody decides. dry_run: decisions are recorded, nobody acts. on: fleets act.")
MINIMUM = doc("Never fewer workers than this.")
MAXIMUM = doc("Never more; at this number an alarm is raised, and no other pool is used instead.")
DOWN_AFTER = doc(
    "How long nothing must have waited before workers go; in pools of long jobs, how long a worker"
    " must have been idle. Null: by the pool, 300 or 1800."
)


class AutoscaleSettings(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is said of one pool."""

    mode: Annotated[Mode, MODE]
    minimum_workers: Annotated[Workers, MINIMUM] = 1
    maximum_workers: Annotated[Annotated[int, Meta(ge=1, le=WORKERS_MAX)], MAXIMUM] = 10
    down_after_seconds: Annotated[
        Annotated[float, Meta(ge=DOWN_AFTER_SECONDS_MIN, le=DOWN_AFTER_SECONDS_MAX)] | None,
        DOWN_AFTER,
    ] = None


class OverrideWish(Struct, kw_only=True, forbid_unknown_fields=True):
    """So many workers, whatever waits, for a while."""

    workers: Annotated[Workers, doc("How many; not more than the pool's maximum.")]
    for_seconds: Annotated[
        float, Meta(gt=0, le=OVERRIDE_SECONDS_MAX), doc("After so long it ends by itself.")
    ] = 3600.0


class OverrideView(Struct, kw_only=True):
    """An override in force."""

    workers: Annotated[int, doc("How many workers the pool should have.")]
    until: Annotated[datetime, doc("When it ends.")]
    by: Annotated[str, doc("The name, or the public part, of the key that said so.")]


class AutoscaleView(Struct, kw_only=True):
    """One pool: its workers, what waits for them, and how many there should be."""

    pool: Annotated[str, doc("The pool.")]
    mode: Annotated[Mode, MODE]
    workers: Annotated[int, doc("Workers that serve it, for all tenants, and do not drain.")]
    busy_workers: Annotated[int, doc("Of those, the ones that hold a job.")]
    closed_workers: Annotated[
        int, doc("Of those, the ones that get no more jobs: one that idles is ended soon.")
    ]
    slots: Annotated[int, doc("Slots of those workers.")]
    wanted_workers: Annotated[
        int, doc("How many there should be. For KEDA and fleets; while off, as many as there are.")
    ]
    minimum_workers: Annotated[int, MINIMUM]
    maximum_workers: Annotated[int, MAXIMUM]
    down_after_seconds: Annotated[float | None, DOWN_AFTER]
    backlog_slot_seconds: Annotated[
        float,
        doc("What waits and could start, in slot-time; not what is capped, paused or parked."),
    ]
    oldest_runnable_age_seconds: Annotated[
        float, doc("How long the oldest of that waits; 0: nothing does.")
    ]
    utilisation: Annotated[float, doc("The part of the slots in use, 0 to 1.")]
    may_go: Annotated[
        list[str],
        doc("Names of workers that are idle, get no more jobs and can be ended. Only end these."),
    ]
    override: Annotated[OverrideView | None, doc("While somebody said how many.")]


class AutoscaleList(Struct, kw_only=True):
    """Every pool there is."""

    pools: Annotated[list[AutoscaleView], doc("By pool.")]


class ScaleDecisionView(Struct, kw_only=True):
    """One change of mind, and the numbers it was made from."""

    at: Annotated[datetime, doc("When.")]
    pool: Annotated[str, doc("The pool.")]
    from_workers: Annotated[int, doc("How many were wanted before.")]
    to_workers: Annotated[int, doc("How many are wanted since.")]
    code: Annotated[str, doc("BACKLOG, OLDEST_AGE, IDLE, MINIMUM, MAXIMUM or OVERRIDE.")]
    reason: Annotated[str, doc("The same for people, with the numbers.")]
    dry_run: Annotated[bool, doc("Nobody acted on it.")]
    facts: Annotated[Raw, doc("What was seen.", dict[str, Any])]


class ScaleDecisionList(Struct, kw_only=True):
    """Decisions, newest first; `next_cursor` is null on the last page."""

    items: Annotated[list[ScaleDecisionView], doc("Newest first; the last 10 000 are kept.")]
    next_cursor: Annotated[
        str | None, doc("Ask for the next page with it; null on the last page.")
    ] = None
