"""Unique jobs: of several that are the same to their tenant, one is there at a time.

What makes them the same is a key of the tenant's own; a digest of it stands in the store, with the
job that holds it. It is held for a while, and only as long as that job is in one of the states that
were named. Whether it is, its row says: nothing is written when the job goes on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from fairway.core.ids import JobId, TenantId, lowest_id_at, unix_ms_of
from fairway.core.lifecycle import FINAL, LIVE, State

DIGEST_BYTES = 16
WITHIN_MS = 24 * 3600 * 1000  # unless told otherwise
WITHIN_MS_MAX = 30 * 24 * 3600 * 1000
SURE_MS = 24 * 3600 * 1000  # after which a job that was to be written is there

UniqueName: TypeAlias = tuple[TenantId, bytes]


class UniqueWish(NamedTuple):
    """As a submission asks for it."""

    digest: bytes
    states: int
    within_ms: int = WITHIN_MS
    returns: bool = False  # the job that is there already; else the submission is refused


class UniqueClaim(NamedTuple):
    """A wish to be the one job of its kind."""

    tenant: TenantId
    digest: bytes
    job: JobId
    states: int
    within_ms: int

    @property
    def name(self) -> UniqueName:
        return self.tenant, self.digest


def digest_of(key: str) -> bytes:
    return hashlib.blake2b(key.encode(), digest_size=DIGEST_BYTES).digest()


def states_of(names: Iterable[State]) -> int:
    """States as bits of one number, as the store asks for them."""
    return sum(1 << state for state in set(names))


WHILE_LIVE = states_of(LIVE)
WHEN_FINAL = states_of(FINAL)


def gone_before(claims: Iterable[UniqueClaim]) -> str:
    """A job whose id is below this one, and that is not there, was there and is forgotten.

    Of a younger one nobody can tell: it may be about to be written, its payload perhaps first.
    """
    return lowest_id_at(max(min(unix_ms_of(claim.job) for claim in claims) - SURE_MS, 0))


def first_claims(claims: Iterable[UniqueClaim]) -> dict[UniqueName, UniqueClaim]:
    """Of several in one group, the first speaks for all."""
    first: dict[UniqueName, UniqueClaim] = {}
    for claim in claims:
        first.setdefault(claim.name, claim)
    return first


def losers(
    claims: Iterable[UniqueClaim], holders: Mapping[UniqueName, JobId]
) -> dict[JobId, JobId]:
    """Jobs that must not be written → the job that is there in place of each.

    `holders` has who holds each name that was claimed, be it one of these.
    """
    found = ((claim.job, holders[claim.name]) for claim in claims)
    return {job: holder for job, holder in found if job != holder}
