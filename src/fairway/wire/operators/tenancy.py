"""Tenants, tiers, limits and pauses on the wire: what operators set and tenants can see."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from fairway.core.ownership.tenant_parts import PARTS_MAX
from fairway.core.tenant import TenantState
from fairway.wire.doc import doc
from fairway.wire.messages import END, JobType, PoolName

TENANT_NAME_PATTERN = r"^[a-z0-9][a-z0-9_.-]{0,62}" + END
TIER_NAME_PATTERN = r"^[a-z][a-z0-9_-]{0,31}" + END

TenantName = Annotated[str, Meta(pattern=TENANT_NAME_PATTERN, examples=["acme"])]
TierName = Annotated[str, Meta(pattern=TIER_NAME_PATTERN, examples=["pro"])]
Weight = Annotated[int, Meta(ge=1, le=100_000)]
DepthLimit = Annotated[int, Meta(ge=0, le=10**12)]
Cap = Annotated[int, Meta(ge=1, le=1_000_000)]
Rate = Annotated[int, Meta(ge=1, le=1_000_000)]
Burst = Annotated[int, Meta(ge=1, le=10_000_000)]
Slots = Annotated[int, Meta(ge=0, le=1_000_000)]
PerMille = Annotated[int, Meta(ge=0, le=1_000)]

NAME = doc("Lower-case letters, digits and _.- only.")
TIER = doc("Where values come from that the tenant has not of its own.")
WEIGHT = doc("Its share of slot-time beside the other tenants' weights.")
DEPTH_LIMIT = doc("Jobs that may wait at once; one more gets a 429.")
CAP = doc("Jobs of one tenant that may run at once in one pool; null for no limit.")
RATE_PER_SECOND = doc("Jobs that may be submitted a second, over time.")
BURST = doc("Jobs that may be submitted at once after a pause.")
RESERVED = doc("Pool → slots kept for this tenant even while idle.")
FLOOR_PER_MILLE = doc(
    "Part of the shared slots that a tenant with work holds at least; floors that add"
    " up to more than 800 shrink in proportion."
)


STATE = doc(
    "active; suspended: its keys open nothing and its jobs do not start; deleted: it can be"
    " restored for a while."
)
REASON = doc("Why it is suspended, for people: its own keys hear it.")
RUNNING = doc(
    "What becomes of jobs that shared workers run: they finish, or are cancelled. Those of the"
    " tenant's own workers end either way and are run again later."
)


class NewTenant(Struct, kw_only=True, forbid_unknown_fields=True):
    """A tenant to add; it gets its first key with the answer. What is left out is its tier's."""

    name: Annotated[TenantName, NAME]
    tier: Annotated[TierName, TIER] = "standard"
    weight: Annotated[Weight | None, WEIGHT] = None
    depth_limit: Annotated[DepthLimit | None, DEPTH_LIMIT] = None
    cap: Annotated[Cap | None, CAP] = None
    rate_per_second: Annotated[Rate | None, RATE_PER_SECOND] = None
    burst: Annotated[Burst | None, BURST] = None
    reserved: Annotated[dict[str, Slots], RESERVED] = {}
    shard: Annotated[
        Annotated[int, Meta(ge=0, le=4095)] | None,
        doc("Where its jobs are to be, for good; null spreads tenants evenly."),
    ] = None
    shards: Annotated[
        Annotated[int, Meta(ge=1, le=PARTS_MAX)],
        doc(
            "How many shards its jobs are spread over, for good: more than one for a tenant that is"
            " too much for one server."
        ),
    ] = 1


class TenantChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """What to change; what is left out stays, null takes the tier's value again."""

    tier: Annotated[TierName | UnsetType, TIER] = UNSET
    weight: Annotated[Weight | UnsetType | None, WEIGHT] = UNSET
    depth_limit: Annotated[DepthLimit | UnsetType | None, DEPTH_LIMIT] = UNSET
    cap: Annotated[Cap | UnsetType | None, CAP] = UNSET
    rate_per_second: Annotated[Rate | UnsetType | None, RATE_PER_SECOND] = UNSET
    burst: Annotated[Burst | UnsetType | None, BURST] = UNSET
    reserved: Annotated[dict[str, Slots] | UnsetType, RESERVED] = UNSET


class TenantView(Struct, kw_only=True):
    """A tenant with the values in force: its own, else its tier's."""

    id: Annotated[int, doc("The tenant's number.")]
    name: Annotated[str, NAME]
    tier: Annotated[str, TIER]
    weight: Annotated[int, WEIGHT]
    floor_per_mille: Annotated[int, FLOOR_PER_MILLE]
    cap: Annotated[int | None, CAP]
    reserved: Annotated[dict[str, int], RESERVED]
    rate_per_second: Annotated[int, RATE_PER_SECOND]
    burst: Annotated[int, BURST]
    depth_limit: Annotated[int, DEPTH_LIMIT]
    state: Annotated[TenantState, STATE]
    reason: Annotated[str, REASON]
    running: Annotated[
        Literal["finish", "cancel"] | None, doc("As chosen with its suspension; null when active.")
    ]
    state_since: Annotated[
        datetime | None, doc("Since when it is in this state; null: since it was made.")
    ]
    kept_until: Annotated[
        datetime | None,
        doc("Deleted: it can be restored until then, and its name stays taken as long."),
    ]
    shard: Annotated[int, doc("Where its jobs are; one server at a time owns a shard.")]
    moving_to: Annotated[
        int | None,
        doc("The shard that it is being moved to: nothing of it starts meanwhile. Null: it stays."),
    ] = None
    shards: Annotated[list[int], doc("All shards that it has, that one first.")]
    home_region: Annotated[
        str | None, doc("The region where its jobs run; null where there is one region only.")
    ] = None
    is_home_here: Annotated[
        bool, doc("Whether that is this region: elsewhere its jobs are passed on, or held.")
    ] = True


class Suspension(Struct, kw_only=True, forbid_unknown_fields=True):
    """How a tenant is suspended."""

    running: Annotated[Literal["finish", "cancel"] | None, RUNNING] = None
    reason: Annotated[
        Annotated[str, Meta(max_length=500, examples=["The invoice of March is open."])] | None,
        REASON,
    ] = None
    replace_reason: Annotated[
        bool,
        doc("Of one that is suspended: true puts this reason in the place of the one it has."),
    ] = False


class TenantList(Struct, kw_only=True):
    """A page of tenants by name; `next_cursor` is null on the last page."""

    tenants: Annotated[list[TenantView], doc("By name.")]
    next_cursor: Annotated[
        str | None, doc("Ask for the next page with it; null on the last page.")
    ] = None


class TenantAdded(TenantView, kw_only=True):
    """The new tenant. The key is shown here once and never again."""

    api_key: Annotated[str, doc("Its first key, shown once.")]


class TierTerms(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a tenant of the tier gets unless it has values of its own."""

    weight: Annotated[Weight, WEIGHT]
    group: Annotated[
        Literal["", "free"], doc("free: its tenants compete inside the free group's slice.")
    ] = ""
    floor_per_mille: Annotated[PerMille, FLOOR_PER_MILLE] = 0
    cap: Annotated[Cap | None, CAP] = None
    rate_per_second: Annotated[Rate, RATE_PER_SECOND] = 100
    burst: Annotated[Burst, BURST] = 1_000
    depth_limit: Annotated[DepthLimit, DEPTH_LIMIT] = 10_000_000


class TierView(TierTerms, kw_only=True):
    """A tier as it is in force."""

    name: Annotated[TierName, doc("Lower-case letters, digits and _- only.")]


class TierList(Struct, kw_only=True):
    """All tiers, the lightest first."""

    tiers: Annotated[list[TierView], doc("The lightest first.")]


class Pause(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which jobs must not start: those that match all that is named."""

    tenant: Annotated[TenantName | None, doc("Jobs of this tenant.")] = None
    type: Annotated[JobType | None, doc("Jobs of this type.")] = None
    pool: Annotated[PoolName | None, doc("Jobs of this pool.")] = None


class Paused(Pause, kw_only=True):
    """What is paused now."""

    type_is_known: Annotated[
        bool,
        doc(
            "False, and only then there: no job, worker or pause has named this type before. Its"
            " jobs will wait when they come; look twice at its name."
        ),
    ] = True


class PauseList(Struct, kw_only=True):
    """Pauses in force."""

    pauses: Annotated[list[Pause], doc("Pauses in force.")]


class HeldBack(Struct, kw_only=True, omit_defaults=True):
    """Something that keeps jobs from starting: those that match all that is named."""

    reason: Annotated[
        str, doc("paused, suspended, circuit_open, or recycling_throttled, as `explain` says it.")
    ]
    detail: Annotated[str, doc("The same in a sentence.")]
    type: Annotated[str | None, doc("Jobs of this type; left out: of every type.")] = None
    pool: Annotated[str | None, doc("Jobs of this pool; left out: of every pool.")] = None
    for_everybody: Annotated[bool, doc("It holds every tenant's jobs alike.")] = False


class Limits(Struct, kw_only=True):
    """What a tenant may do, how much of it is used, and what was refused."""

    tier: Annotated[str, doc("Your tier.")]
    weight: Annotated[int, WEIGHT]
    rate_per_second: Annotated[int, RATE_PER_SECOND]
    burst: Annotated[int, BURST]
    jobs_left: Annotated[int, doc("Jobs that you may submit at once now.")]
    depth: Annotated[int, doc("Jobs of yours that wait now.")]
    depth_limit: Annotated[int, DEPTH_LIMIT]
    cap: Annotated[int | None, CAP]
    payload_bytes_max: Annotated[int, doc("The largest payload of a job.")]
    payload_values_max: Annotated[int, doc("Values in one payload; upload those with more.")]
    batch_jobs_max: Annotated[int, doc("Jobs in one batch.")]
    batch_values_max: Annotated[int, doc("Values in all jobs of a batch.")]
    refused: Annotated[
        dict[str, int], doc("Submissions refused since this server started, by code.")
    ]
    reached: Annotated[
        list[str], doc("Which of these are used up now: rate_per_second, depth_limit, cap.")
    ]
    held: Annotated[list[HeldBack], doc("What keeps jobs from starting now.")]
