"""Recorded work, read from a file of JSON lines: `fairway simulate --from usage.jsonl`.

Each line is one of

    an answer of GET /v1/usage?by=hour&group=pool,type    a tenant's jobs by the hour: how many, and
                                                          how long they ran in the mean
    an answer of GET /v1/tenants                          terms: tier, weight, cap
    {"at": …, "tenant": …, "pool": …, "type": …, "seconds": …}    one job, if you have it so exact

Jobs of an hour are spread over it by chance, by a seed. Bounded: who hands in more than a
simulation can hold is told so. Refuses what it does not understand, with its line.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from fairway import FairwayError
from fairway.core.ids import TenantId, TypeId
from fairway.core.pools import BY_NAME, SHORT
from fairway.core.tenant import Tenant
from fairway.simulate.virtual_time import SECOND_US
from fairway.simulate.work import TIERS, Arrival, Kind, tenant_of

JOBS_MAX = 5_000_000
TENANTS_MAX = 200_000
HOUR_SECONDS = 3600


class UsageLine(Struct):
    period: datetime
    jobs: int
    attempts: int
    billed_us: int
    unbilled_us: int = 0
    pool: str | None = None
    type: str | None = None


class UsageAnswer(Struct):
    tenant: str
    by: str
    lines: list[UsageLine]


class TermsLine(Struct):
    name: str
    tier: str = "standard"
    weight: int | None = None
    cap: int | None = None


class TenantsAnswer(Struct):
    tenants: list[TermsLine]


class JobLine(Struct, forbid_unknown_fields=True):
    at: datetime | float
    tenant: str
    seconds: float
    pool: str = "short"
    type: str = "job"


class Job(NamedTuple):
    at: float  # in seconds of any clock
    tenant: str
    pool: str
    type: str
    seconds: float


class Recorded(NamedTuple):
    """Who sent what, when; and the terms that held."""

    tenants: dict[str, Tenant]
    kinds: list[Kind]
    arrivals: list[Arrival]
    seconds: float  # from the first to the end of the last


def read(lines: Iterable[bytes], seed: int = 1) -> Recorded:
    jobs: list[Job] = []
    terms: dict[str, TermsLine] = {}
    dice = random.Random(f"{seed}/replay")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        found = _understood(line, number)
        if isinstance(found, TenantsAnswer):
            terms |= {one.name: one for one in found.tenants}
        elif isinstance(found, UsageAnswer):
            jobs += _of_usage(found, number, dice, JOBS_MAX - len(jobs))
        else:
            jobs.append(Job(_moment(found.at), found.tenant, found.pool, found.type, found.seconds))
        if len(jobs) > JOBS_MAX or len(terms) > TENANTS_MAX:
            raise _too_much(number)
    if not jobs:
        raise FairwayError("The file tells of no jobs.")
    return _recorded(jobs, terms)


def _understood(line: bytes, number: int) -> UsageAnswer | TenantsAnswer | JobLine:
    try:
        said: Any = msgspec.json.decode(line)
        if isinstance(said, dict) and "lines" in said:
            return msgspec.convert(said, UsageAnswer)
        if isinstance(said, dict) and "tenants" in said:
            return msgspec.convert(said, TenantsAnswer)
        return msgspec.convert(said, JobLine)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise FairwayError(
            f"Line {number} is neither an answer of GET /v1/usage or GET /v1/tenants nor a job:"
            f" {error}"
        ) from None


def _of_usage(answer: UsageAnswer, number: int, dice: random.Random, room: int) -> Iterator[Job]:
    if answer.by != "hour":
        raise FairwayError(f"Line {number} tells of usage by the {answer.by}: ask with by=hour.")
    if sum(line.jobs for line in answer.lines) > room:
        raise _too_much(number)
    for line in answer.lines:
        start = line.period.timestamp()
        ran = (line.billed_us + line.unbilled_us) / max(line.attempts, line.jobs, 1) / SECOND_US
        for _ in range(line.jobs):
            at = start + dice.random() * HOUR_SECONDS
            yield Job(at, answer.tenant, line.pool or "short", line.type or "job", ran)


def _too_much(number: int) -> FairwayError:
    return FairwayError(
        f"With line {number} there are more than {JOBS_MAX:,} jobs or {TENANTS_MAX:,} tenants: take"
        " fewer hours, or a part of the tenants and the same part of the slots."
    )


def _moment(at: datetime | float) -> float:
    return at.timestamp() if isinstance(at, datetime) else at


def _recorded(jobs: list[Job], terms: dict[str, TermsLine]) -> Recorded:
    jobs.sort()
    first = jobs[0].at
    names = sorted({job.tenant for job in jobs})
    tenants = {
        name: _tenant(number, terms.get(name, TermsLine(name)))
        for number, name in enumerate(names, 1)
    }
    kinds: dict[tuple[str, str], Kind] = {}
    for job in jobs:
        kinds.setdefault((job.type, job.pool), _kind(len(kinds) + 1, job))
    arrivals = [
        Arrival(
            round((job.at - first) * SECOND_US),
            TenantId(tenants[job.tenant].id),
            kinds[job.type, job.pool],
            round(max(job.seconds, 0.0) * SECOND_US),
        )
        for job in jobs
    ]
    end_us = max(one.at_us + one.run_us for one in arrivals)
    return Recorded(tenants, list(kinds.values()), arrivals, end_us / SECOND_US)


def _kind(number: int, job: Job) -> Kind:
    """A pool of yours that this knows nothing of is taken for the short one."""
    return Kind(TypeId(number), job.type, BY_NAME.get(job.pool, SHORT).number)


def _tenant(number: int, terms: TermsLine) -> Tenant:
    own = {
        name: value
        for name, value in (("weight", terms.weight), ("cap", terms.cap))
        if value is not None
    }
    tier = terms.tier if terms.tier in TIERS else "standard"
    return tenant_of(number, terms.name, tier, **own)
