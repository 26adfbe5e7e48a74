"""Usage and money on the wire: whole microseconds and whole millionths of the currency."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from fairway.wire.doc import doc
from fairway.wire.messages import END, Moment

PRICED_POOL_PATTERN = r"^(\*|[a-z][a-z0-9_-]{0,31})" + END
PricedPool = Annotated[str, Meta(pattern=PRICED_POOL_PATTERN, examples=["short"])]
SlotSecondMicros = Annotated[int, Meta(ge=0, le=10**8)]
FeeMicros = Annotated[int, Meta(ge=0, le=10**15)]
CapMicros = Annotated[int, Meta(ge=0, le=10**18)]
GraceSeconds = Annotated[int, Meta(ge=0, le=31 * 24 * 3600)]

JOBS = doc("Jobs that ended with a run. One that was replayed and ended again counts again.")
ATTEMPTS = doc("Runs that ended and are billed.")
BILLED = doc("Microseconds of slot-time that are billed.")
UNBILLED = doc("Of runs that the platform cut short: a worker died, a deploy. Not billed.")
VALID_FROM = doc("From this hour on, until another of the same pool begins.")
BASE_FEE = doc("A month, in millionths of the currency.")
SLOT_SECOND = doc("A slot-second, in millionths of the currency.")
PRICED_POOL = doc("A pool, or `*` for every pool that has no price of its own.")
CAP = doc("What may be spent in a month, in millionths of the currency.")
GRACE = doc("For so long after it is reached jobs still start.")


class UsageLine(Struct, kw_only=True):
    """What was used in one period; pool and type are null where all are summed."""

    period: Annotated[datetime, doc("Its beginning, of UTC's hours, days and months.")]
    pool: Annotated[str | None, doc("The pool.")]
    type: Annotated[str | None, doc("The job type.")]
    jobs: Annotated[int, JOBS]
    attempts: Annotated[int, ATTEMPTS]
    billed_us: Annotated[int, BILLED]
    unbilled_us: Annotated[int, UNBILLED]


class UsageTotal(Struct, kw_only=True):
    """All lines together."""

    jobs: Annotated[int, JOBS]
    attempts: Annotated[int, ATTEMPTS]
    billed_us: Annotated[int, BILLED]
    unbilled_us: Annotated[int, UNBILLED]


class Usage(Struct, kw_only=True):
    """What a tenant's runs used that ended in some time, exact to the microsecond."""

    tenant: Annotated[str, doc("Whose.")]
    since: Annotated[datetime, doc("The first hour.")]
    before: Annotated[datetime, doc("The hour after the last.")]
    by: Annotated[Literal["hour", "day", "month"], doc("What a period is.")]
    lines: Annotated[list[UsageLine], doc("In order; what was not used has none.")]
    total: Annotated[UsageTotal, doc("Their sum.")]


class AttemptView(Struct, kw_only=True):
    """One run that ended."""

    job: Annotated[str, doc("The job's id.")]
    pool: Annotated[str, doc("The pool.")]
    type: Annotated[str, doc("The job type.")]
    ended_at: Annotated[datetime, doc("When; this says in which hour it is counted.")]
    outcome: Annotated[str, doc("How, as the job's history has it.")]
    ran_us: Annotated[int, doc("Microseconds that it held a slot.")]
    billed: Annotated[bool, doc("Whether it is billed.")]


class AttemptList(Struct, kw_only=True):
    """A page of runs; it may be empty with more behind it, until `next_cursor` is null."""

    attempts: Annotated[list[AttemptView], doc("Newest job first.")]
    next_cursor: Annotated[str | None, doc("For the next page; null on the last.")]


class StatementLine(Struct, kw_only=True):
    """A base fee, or all usage of one pool and job type at one price."""

    kind: Annotated[Literal["base_fee", "usage"], doc("What it is for.")]
    pool: Annotated[str, doc("The pool; `*`: all of them.")]
    type: Annotated[str, doc("The job type; empty for a base fee.")]
    jobs: Annotated[int, JOBS]
    attempts: Annotated[int, ATTEMPTS]
    billed_us: Annotated[int, BILLED]
    unbilled_us: Annotated[int, UNBILLED]
    price_micros: Annotated[int, doc("Of a slot-second; of a base fee, of the month.")]
    amount_micros: Annotated[int, doc("Quantity times price, rounded once, half up.")]


class StatementView(Struct, kw_only=True):
    """What a month came to. Once it is closed it never changes."""

    tenant: Annotated[str, doc("Whose.")]
    month: Annotated[str, doc("Of UTC.")]
    closed: Annotated[bool, doc("Whether nothing of it will change any more.")]
    closed_at: Annotated[datetime | None, doc("Since when it is kept.")]
    lines: Annotated[list[StatementLine], doc("Base fees, then usage.")]
    total_micros: Annotated[int, doc("The sum of the amounts.")]


class NewPrice(Struct, kw_only=True, forbid_unknown_fields=True):
    """A price that is to come. What has begun is never changed."""

    pool: Annotated[PricedPool, PRICED_POOL] = "*"
    valid_from: Annotated[Moment | None, doc("The beginning of an hour; null for the next.")] = None
    base_fee_micros: Annotated[FeeMicros, BASE_FEE] = 0
    slot_second_micros: Annotated[SlotSecondMicros, SLOT_SECOND]


class PriceView(Struct, kw_only=True):
    """A price, and since when it holds."""

    id: Annotated[str, doc("By which it can be taken back until it begins: pool and hour.")]
    pool: Annotated[str, PRICED_POOL]
    valid_from: Annotated[datetime, VALID_FROM]
    base_fee_micros: Annotated[int, BASE_FEE]
    slot_second_micros: Annotated[int, SLOT_SECOND]


class PriceList(Struct, kw_only=True):
    """All prices there were, are and will be."""

    prices: Annotated[list[PriceView], doc("By pool, then by when they begin.")]


class SpendCapTerms(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a tenant may spend in a month."""

    cap_micros: Annotated[CapMicros, CAP]
    grace_seconds: Annotated[GraceSeconds, GRACE] = 3600


class SpendCapView(Struct, kw_only=True):
    """A cap on a month's spending, and where its tenant stands."""

    tenant: Annotated[str, doc("Whose.")]
    cap_micros: Annotated[int | None, doc("What may be spent in a month; null for no cap.")]
    grace_seconds: Annotated[int | None, GRACE]
    spent_micros: Annotated[int | None, doc("Of this month, until now.")]
    stage: Annotated[
        Literal["none", "below", "near", "reached", "paused"],
        doc("What was told; `paused`: no more jobs start."),
    ]
    reached_at: Annotated[datetime | None, doc("When it was reached.")]


class SpendCapHolds(Struct, kw_only=True):
    """Tenants no more of whose jobs start, because their caps are spent."""

    tenants: Annotated[list[str], doc("By name; of very many the first thousand.")]
    count: Annotated[int, doc("How many there are.")]
