"""Regions as operators see and change them: who is there, whose home is where."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from fairway.wire.doc import doc

Force = Annotated[
    bool,
    doc(
        "Move even what the region has not handed over: of two jobs with one Idempotency-Key that"
        " both regions accepted, both may run."
    ),
]
RegionName = Annotated[str, Meta(pattern="^[a-z][a-z0-9-]{0,31}$")]


class RegionView(Struct, kw_only=True):
    """One region, as the one that answers sees it."""

    name: Annotated[str, doc("Its name.")]
    urls: Annotated[list[str], doc("Addresses of its servers.")]
    is_here: Annotated[bool, doc("Whether it is the one that answers.")]
    is_directory: Annotated[bool, doc("Whether tenants, tiers, keys and homes are changed there.")]
    is_reachable: Annotated[bool, doc("Whether it answered when it was last asked.")]
    latency_ms: Annotated[float | None, doc("How long its last answer took; null for this one.")]
    tenants: Annotated[int, doc("How many are at home there.")]
    directory_term: Annotated[int | None, doc("The directory term that it knows; null: not heard.")]
    trouble: Annotated[
        str, doc("What is known of it beside its silence, such as that it refuses our secret.")
    ] = ""


class RegionList(Struct, kw_only=True):
    """All regions, and what waits in the one that answers."""

    here: Annotated[str, doc("The region that answers.")]
    directory: Annotated[str, doc("Where tenants, tiers, keys and homes are changed.")]
    directory_term: Annotated[int, doc("Grows with every failover; the highest stands.")]
    lag_seconds: Annotated[float, doc("How old this region's copy of the directory is.")]
    conflicts: Annotated[
        int, doc("Tenants of the directory whose name or number is another's in this region.")
    ]
    held: Annotated[int, doc("Jobs that wait here to be handed over to their homes.")]
    held_in_doubt: Annotated[
        int,
        doc(
            "Of those, sent to a region that gave no answer and is not their home any more: only it"
            " can tell whether it has them."
        ),
    ]
    regions: Annotated[list[RegionView], doc("Every region, in the order of the settings.")]


class HomeWish(Struct, kw_only=True, forbid_unknown_fields=True):
    """Where a tenant is to be at home."""

    region: Annotated[RegionName, doc("The region.")]
    force: Force = False


class HomeView(Struct, kw_only=True):
    """Where a tenant is at home."""

    tenant: Annotated[str, doc("The tenant.")]
    region: Annotated[str, doc("Where its jobs are dispatched.")]
    term: Annotated[int, doc("Grows with every move; 0: it never moved.")]


class FailoverWish(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Who takes over the tenants of a region that is lost.

    What is not wished is not passed on: a directory of the build before knows no `force`.
    """

    to: Annotated[RegionName, doc("The region that becomes their home.")]
    force: Annotated[
        bool,
        doc(
            "Even if the region answers. What waits there is handed over once it has heard of this;"
            " jobs that it runs meanwhile end there."
        ),
    ] = False


class FailbackWish(Struct, kw_only=True, forbid_unknown_fields=True):
    """How tenants go back to a region."""

    force: Force = False


class HomesMoved(Struct, kw_only=True):
    """What a failover or a failback did."""

    source: Annotated[str, doc("Whose tenants moved.")]
    target: Annotated[str, doc("Where they are at home now.")]
    tenants: Annotated[int, doc("How many moved.")]
    directory: Annotated[str, doc("The directory now.")]
    directory_term: Annotated[int, doc("Its term.")]
    tenants_waiting: Annotated[
        int,
        doc("How many did not move yet: the region has still to hand over what it had of them."),
    ] = 0
    jobs_waiting: Annotated[
        int, doc("Of their jobs, how many are held there to be handed over so far.")
    ] = 0
