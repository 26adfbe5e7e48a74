"""What alarms look at: the facts of one moment, and what each alarm reads in them.

A fact that could not be had is None and is read by nobody; within a list, the one subject. A
subject that is missing from a list is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from fairway.core.insight.span_words import span_in_words

LOST_WINDOW_SECONDS = 300.0  # leases that were lost are counted over so long
RATE_WINDOW_SECONDS = 300.0  # and so are ends of jobs
DEAD_PER_SECOND_MIN = 0.02  # a handful in five minutes: less is no rate
BASELINE_HOURS = 24  # a tenant's usual hour is the mean of so many, at most, before the last one
BASELINE_JOBS_MIN = 100.0  # a tenant with less than this an hour is taken to have so many
PLATFORM = "platform"
DISK = "data folder"


class PoolWait(NamedTuple):
    name: str
    queued: int
    slots: int
    oldest_runnable_age_seconds: float | None
    slo_seconds: float


class TenantPace(NamedTuple):
    name: str
    accepted_last_hour: float
    usual_per_hour: float

    @property
    def times_usual(self) -> float:
        return self.accepted_last_hour / max(self.usual_per_hour, BASELINE_JOBS_MIN)


class DiskRoom(NamedTuple):
    free_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmFacts:
    """What was seen in one look, over all that this server answers for."""

    pools: tuple[PoolWait, ...] | None = None
    promoter_lag_seconds: float | None = None
    dead_per_second: float | None = None  # over the last `RATE_WINDOW_SECONDS`
    ended_per_second: float | None = None
    circuits_open: int | None = None
    shards_owned: int | None = None  # by any server
    shards_total: int | None = None
    leases_lost: int | None = None  # within the last `LOST_WINDOW_SECONDS`
    tenants: tuple[TenantPace, ...] | None = None
    disk: DiskRoom | None = None


class AlarmReading(NamedTuple):
    """A value, and the unit in which the alarm's threshold counts."""

    value: float
    text: str
    scale: float = 1.0


Readings: TypeAlias = Mapping[str, AlarmReading | None]
Read: TypeAlias = Callable[[AlarmFacts], Readings | None]


def oldest_age(facts: AlarmFacts) -> Readings | None:
    if facts.pools is None:
        return None
    return {f"pool {pool.name}": _age(pool) for pool in facts.pools}


def _age(pool: PoolWait) -> AlarmReading | None:
    age = pool.oldest_runnable_age_seconds
    if age is None:
        return None
    text = (
        f"The oldest job of the pool {pool.name} that could run has waited {span_in_words(age)};"
        f" {span_in_words(pool.slo_seconds)} are promised."
    )
    return AlarmReading(age, text, pool.slo_seconds)


def unserved(facts: AlarmFacts) -> Readings | None:
    if facts.pools is None:
        return None
    return {
        f"pool {pool.name}": AlarmReading(
            0 if pool.slots else pool.queued,
            f"{_many(pool.queued, 'job')} in the pool {pool.name}, and no worker that serves it.",
        )
        for pool in facts.pools
    }


def promoter_lag(facts: AlarmFacts) -> Readings | None:
    if facts.promoter_lag_seconds is None:
        return None
    lag = facts.promoter_lag_seconds
    text = f"The oldest due job has waited {span_in_words(lag)} to be queued."
    return {PLATFORM: AlarmReading(lag, text)}


def dead_letters(facts: AlarmFacts) -> Readings | None:
    if facts.dead_per_second is None or facts.ended_per_second is None:
        return None
    dead, ended = facts.dead_per_second, facts.ended_per_second
    share = dead / ended if dead >= DEAD_PER_SECOND_MIN and ended else 0.0
    text = f"{share * 100:.0f} % of the jobs that ended in the last minutes are dead."
    return {PLATFORM: AlarmReading(share, text)}


def circuits(facts: AlarmFacts) -> Readings | None:
    if facts.circuits_open is None:
        return None
    count = facts.circuits_open
    words = "1 circuit is open" if count == 1 else f"{count} circuits are open"
    return {PLATFORM: AlarmReading(count, f"{words}: jobs that need what is away are parked.")}


def shards(facts: AlarmFacts) -> Readings | None:
    if facts.shards_owned is None or facts.shards_total is None:
        return None
    missing = max(facts.shards_total - facts.shards_owned, 0)
    text = f"{missing} of {_many(facts.shards_total, 'shard')} without an owner."
    return {PLATFORM: AlarmReading(missing, text)}


def leases_lost(facts: AlarmFacts) -> Readings | None:
    if facts.leases_lost is None:
        return None
    text = (
        f"{_many(facts.leases_lost, 'run')} lost with dead or silent workers in the last"
        f" {LOST_WINDOW_SECONDS / 60:.0f} min."
    )
    return {PLATFORM: AlarmReading(facts.leases_lost, text)}


def tenants(facts: AlarmFacts) -> Readings | None:
    if facts.tenants is None:
        return None
    return {f"tenant {one.name}": _pace(one) for one in facts.tenants}


def _pace(one: TenantPace) -> AlarmReading:
    text = (
        f"{one.name} handed in {_many(round(one.accepted_last_hour), 'job')} within an hour;"
        f" its usual hour has {one.usual_per_hour:.0f}."
    )
    return AlarmReading(one.times_usual, text)


def disk(facts: AlarmFacts) -> Readings | None:
    if facts.disk is None or facts.disk.total_bytes <= 0:
        return None
    free, total = facts.disk
    text = f"{free >> 20} MB are free of {total >> 20} MB on the disk of the data folder."
    return {DISK: AlarmReading(1 - free / total, text)}


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
