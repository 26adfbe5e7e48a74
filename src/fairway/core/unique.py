"""Unique jobs: of several that are the same to their tenant, one is there at a time.

What makes them the same is a key of the tenant's own; a digest of it stands in the store, with the
job that holds it. It is held for a while, and only as long as that job is in one of the states that
were named. Whether it is, its row says: nothing is written when the job goes on.

A job may also take the place of the one that is there, while that waits. A debounced job does so,
and is due a while later each time; `since` is when the first of such a series came.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple, TypeAlias

from fairway.core.ids import JobId, TenantId, lowest_id_at, unix_ms_of
from fairway.core.lifecycle import FINAL, LIVE, State

DIGEST_BYTES = 16
WITHIN_MS = 24 * 3600 * 1000  # unless told otherwise
WITHIN_MS_MAX = 30 * 24 * 3600 * 1000
SURE_MS = 24 * 3600 * 1000  # after which a job that was to be written is there

#: Where nobody is left who could hear of the one that is there.
NOT_IN_A_FLOW = (
    "A job of a flow cannot be unique: the flow counts on each of its jobs, so none of them can be"
    " left out for one that is there, or be replaced by one that comes. Hand the unique job in by"
    " itself and let the flow wait for it with `after`, or use a job type without `unique`."
)
NOT_IN_A_RUN = (
    "A job that a run starts cannot be unique: the run is over when its follow-ups are let in, so"
    " it could not be told of the one that is there. Start a job type without `unique`; if that"
    " has `concurrency` by the same key, doubles run one after the other."
)
NOT_IN_A_TRANSACTION = (
    "A job of a transaction cannot be unique: the transaction has committed when the job is let"
    " in, so it could not be told of the one that is there. Keep the key in a table of your own"
    " with a unique constraint, or hand the job in over HTTP after the commit."
)

UniqueName: TypeAlias = tuple[TenantId, bytes]


class UniqueWish(NamedTuple):
    """As a submission asks for it."""

    digest: bytes
    states: int
    within_ms: int = WITHIN_MS
    returns: bool = False  # the job that is there already; else the submission is refused
    replaces: bool = False  # takes the place of one that waits; refused if it does not
    delay_most_ms: int | None = None  # from the first of those replaced, however many come


class UniqueClaim(NamedTuple):
    """A wish to be the one job of its kind."""

    tenant: TenantId
    digest: bytes
    job: JobId
    states: int
    within_ms: int
    replaces: bool = False

    @property
    def name(self) -> UniqueName:
        return self.tenant, self.digest


class Why(Enum):
    """Why a job was not made."""

    COUNTS = "another is there"
    RUNS = "the other does not wait any more"
    IN_FLOW = "others wait for the other"
    NOT_OWNER = "nobody here may replace jobs now"


class Lost(NamedTuple):
    """What kept a job out; the one that is there, if that is it."""

    why: Why
    holder: JobId | None = None


class Held(NamedTuple):
    """A name in the store."""

    job: JobId
    states: int  # in which it holds the name, as bits
    since_ms: int | None = None  # of the first that it stands for, if it has replaced any


class Waits(NamedTuple):
    """Of a job that waits: what matters to one that would take its place."""

    is_due: bool  # queued, or about to be
    in_flow: bool
    has_run: bool  # it waits for its next attempt


class Holder(NamedTuple):
    """Who holds a name, as it is judged."""

    job: JobId
    counts: bool = True
    blocks: Why | None = None  # why it cannot be replaced
    since_ms: int | None = None  # when its series began; None: with whoever comes next


class Settled(NamedTuple):
    """What becomes of all claims of a group."""

    lost: dict[JobId, Lost]  # must not be written
    replaced: dict[JobId, JobId]  # must be cancelled → who takes its place
    holders: dict[UniqueName, UniqueClaim]  # of these jobs, in the end
    since_ms: dict[JobId, int]  # of jobs that replaced others: when the first of those came


def digest_of(key: str) -> bytes:
    return hashlib.blake2b(key.encode(), digest_size=DIGEST_BYTES).digest()


def states_of(names: Iterable[State]) -> int:
    """States as bits of one number, as the store asks for them."""
    return sum(1 << state for state in set(names))


WHILE_LIVE = states_of(LIVE)
WHILE_WAITING = states_of([State.SCHEDULED, State.QUEUED])
WHEN_FINAL = states_of(FINAL)


def gone_before(claims: Iterable[UniqueClaim]) -> str:
    """A job whose id is below this one, and that is not there, was there and is forgotten.

    Of a younger one nobody can tell: it may be about to be written, its payload perhaps first.
    """
    return lowest_id_at(max(min(unix_ms_of(claim.job) for claim in claims) - SURE_MS, 0))


def first_claims(claims: Iterable[UniqueClaim]) -> dict[UniqueName, UniqueClaim]:
    """Of several in one group, the first asks the store for all."""
    first: dict[UniqueName, UniqueClaim] = {}
    for claim in claims:
        first.setdefault(claim.name, claim)
    return first


def judged(held: Held, waits: Waits | None, *, is_underway: bool) -> Holder:
    """Whether a job that the store has as the holder counts, and may be replaced.

    `waits` is None for one that is seen not to wait. That it counts then was true a moment ago, so
    only one that counts in no other state is passed over.
    """
    if is_underway:  # its row may not say so yet
        return Holder(held.job, bool(held.states >> State.RUNNING & 1), Why.RUNS)
    if waits is None:
        return Holder(held.job, bool(held.states & ~WHILE_WAITING), Why.RUNS)
    state = State.QUEUED if waits.is_due else State.SCHEDULED
    since_ms = unix_ms_of(held.job) if held.since_ms is None else held.since_ms
    return Holder(
        held.job,
        bool(held.states >> state & 1),
        Why.IN_FLOW if waits.in_flow else None,
        None if waits.has_run else since_ms,
    )


def settle(claims: Iterable[UniqueClaim], held: Mapping[UniqueName, Holder]) -> Settled:
    """As if they came one after the other, each finding what those before it left.

    `held` has who held a name before all of these; of those there, each may be replaced once.
    """
    holders = dict(held)
    settled = Settled({}, {}, {}, {})
    for claim in claims:
        holder, since_ms = holders.get(claim.name), None
        if holder is not None and holder.counts:
            if not claim.replaces:
                settled.lost[claim.job] = Lost(Why.COUNTS, holder.job)
                continue
            if holder.blocks is not None:
                settled.lost[claim.job] = Lost(holder.blocks, holder.job)
                continue
            settled.replaced[holder.job] = claim.job
            since_ms = holder.since_ms
        if since_ms is None:
            since_ms = unix_ms_of(claim.job)
        else:
            settled.since_ms[claim.job] = since_ms
        holders[claim.name] = Holder(claim.job, since_ms=since_ms)
        settled.holders[claim.name] = claim
    return settled


def capped_ms(due_ms: int, first_ms: int, delay_most_ms: int | None) -> int:
    """When a debounced job is due, however often it was put off since the first came."""
    return due_ms if delay_most_ms is None else min(due_ms, first_ms + delay_most_ms)
