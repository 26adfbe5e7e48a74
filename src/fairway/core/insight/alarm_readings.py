"""What alarms look at: the facts of one moment, and what each alarm reads in them.

A fact that could not be had is None and is read by nobody; within a list, the one subject. A
subject that is missing from a list is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from fairway.core.insight.spans import span

LOST_WINDOW_SECONDS = 300.0  # leases that were lost are counted over so long
RATE_WINDOW_SECONDS = 300.0  # and so are ends of jobs
DEAD_PER_SECOND_MIN = 0.02  # a handful in five minutes: less is no rate
DEAD_SHARE_MAX = 0.05  # of the jobs that end
BASELINE_HOURS = 24  # a tenant's usual hour is the mean of so many, at most, before the last one
BASELINE_JOBS_MIN = 100.0  # a tenant with less than this an hour is taken to have so many
PLATFORM = "platform"
DISK = "data folder"
TYPES_NAMED_MAX = 3  # of a tenant with open circuits; the others are one subject


class PoolWait(NamedTuple):
    name: str
    queued: int
    slots: int
    oldest_runnable_age_seconds: float | None
    slo_seconds: float
    without_worker: int = 0  # jobs whose type nobody runs, at least
    types_without_worker: tuple[str, ...] = ()  # some, with whose they are


class TenantPace(NamedTuple):
    name: str
    accepted_last_hour: float
    usual_per_hour: float

    @property
    def times_usual(self) -> float:
        return self.accepted_last_hour / max(self.usual_per_hour, BASELINE_JOBS_MIN)


class TenantDeaths(NamedTuple):
    """How one tenant's jobs ended in the last minutes."""

    name: str
    dead: int
    ended: int
    type: str = ""  # of most of the dead, if it is known


class TypeParked(NamedTuple):
    """A job type of a tenant with circuits that are open."""

    tenant: str
    type: str
    dependency: str  # one of those that are away
    dependencies: int
    types: int  # of this tenant with such circuits, this one among them
    rank: int  # among those, from 1 on: the first one was parked first


class WebhookOff(NamedTuple):
    """Alarms were sent there, until the platform gave it up."""

    id: str
    shown_url: str
    because: str


class DiskRoom(NamedTuple):
    free_bytes: int
    total_bytes: int


class OtherRegion(NamedTuple):
    """As it is seen from this one."""

    name: str
    answers: bool
    held_here: int  # jobs that wait here for homes that are away, whichever those are
    trouble: str = ""  # what is known of it beside its silence


class PoolAtMaximum(NamedTuple):
    """A pool whose workers are counted by the autoscaler."""

    name: str
    short_of: int  # workers that it needs beyond its maximum
    maximum_workers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmFacts:
    """What was seen in one look, over all that this server answers for."""

    pools: tuple[PoolWait, ...] | None = None
    promoter_lag_seconds: float | None = None
    dead_per_second: float | None = None  # over the last `RATE_WINDOW_SECONDS`
    ended_per_second: float | None = None
    recently_dead: int | None = None  # in the last whole minutes, of all tenants
    recently_ended: int | None = None
    worst_of_dead: TenantDeaths | None = None  # whose jobs died most often in those
    parked: tuple[TypeParked, ...] | None = None
    webhooks_off: tuple[WebhookOff, ...] | None = None
    shards_owned: int | None = None  # by any server
    shards_total: int | None = None
    leases_lost: int | None = None  # within the last `LOST_WINDOW_SECONDS`
    tenants: tuple[TenantPace, ...] | None = None
    disk: DiskRoom | None = None
    at_maximum: tuple[PoolAtMaximum, ...] | None = None
    regions: tuple[OtherRegion, ...] | None = None  # None: there is one region, or nobody has asked


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
        f"The oldest job of the pool {pool.name} that could run has waited {span(age)};"
        f" {span(pool.slo_seconds)} are promised."
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


def without_worker(facts: AlarmFacts) -> Readings | None:
    """Each type for itself, of those whose names are known; else the pool. One that no worker
    serves is told of as such."""
    if facts.pools is None:
        return None
    found: dict[str, AlarmReading] = {}
    for pool in facts.pools:
        if pool.slots and pool.without_worker:
            found |= _without_worker(pool)
    return found


def _without_worker(pool: PoolWait) -> dict[str, AlarmReading]:
    where = f"in the pool {pool.name}"
    if not pool.types_without_worker:
        text = f"{_many(pool.without_worker, 'job')} {where} whose type no worker runs."
        return {f"pool {pool.name}": AlarmReading(pool.without_worker, text)}
    return {
        f"type {name}": AlarmReading(1, f"Jobs of the type {name} wait {where}: no worker runs it.")
        for name in pool.types_without_worker
    }


def promoter_lag(facts: AlarmFacts) -> Readings | None:
    if facts.promoter_lag_seconds is None:
        return None
    lag = facts.promoter_lag_seconds
    return {PLATFORM: AlarmReading(lag, f"The oldest due job has waited {span(lag)} to be queued.")}


def dead_letters(facts: AlarmFacts) -> Readings | None:
    if facts.dead_per_second is None or facts.ended_per_second is None:
        return None
    dead, ended = facts.dead_per_second, facts.ended_per_second
    share = dead / ended if dead >= DEAD_PER_SECOND_MIN and ended else 0.0
    text = f"{share * 100:.0f} % of the jobs that ended in the last minutes are dead."
    if (worst := facts.worst_of_dead) is None:
        return {PLATFORM: AlarmReading(share, text)}
    mostly = f"most of them {worst.name}'s{f', of the type {worst.type}' if worst.type else ''}"
    if share_of_others(facts) > DEAD_SHARE_MAX:
        return {PLATFORM: AlarmReading(share, f"{text[:-1]}, {mostly}.")}
    alone = f"{text[:-1]}, {mostly}; without those there would be no alarm."
    return {PLATFORM: AlarmReading(0.0, text), f"tenant {worst.name}": AlarmReading(share, alone)}


def share_of_others(facts: AlarmFacts) -> float:
    """The part of the jobs that died, of all tenants but the one with the most dead: one tenant
    alone is no trouble of the platform's."""
    if facts.worst_of_dead is None:
        return 0.0
    dead = (facts.recently_dead or 0) - facts.worst_of_dead.dead
    ended = (facts.recently_ended or 0) - facts.worst_of_dead.ended
    return dead / ended if ended > 0 else 0.0


def circuits(facts: AlarmFacts) -> Readings | None:
    """Each type of a tenant for itself; of a tenant with many, the rest together: nobody's jobs
    raise a hundred alarms."""
    if facts.parked is None:
        return None
    found: dict[str, AlarmReading] = {}
    for one in facts.parked:
        if one.rank <= TYPES_NAMED_MAX:
            more = f" and {one.dependencies - 1} more are" if one.dependencies > 1 else " is"
            text = f"{one.dependency}{more} away: jobs of the type {one.type} of {one.tenant}"
            text = f"{text} that need it are parked."
            found[f"type {one.type} of {one.tenant}"] = AlarmReading(one.dependencies, text)
        if one.types > TYPES_NAMED_MAX:
            beyond = one.types - TYPES_NAMED_MAX
            text = f"Jobs of {_many(beyond, 'further type')} of {one.tenant} are parked."
            found[f"tenant {one.tenant}"] = AlarmReading(beyond, text)
    return found


def webhooks(facts: AlarmFacts) -> Readings | None:
    if facts.webhooks_off is None:
        return None
    return {
        f"webhook {one.id}": AlarmReading(
            1, f"Alarms are sent to {one.shown_url} no more. {one.because}"
        )
        for one in facts.webhooks_off
    }


def shards(facts: AlarmFacts) -> Readings | None:
    if facts.shards_owned is None or facts.shards_total is None:
        return None
    missing = max(facts.shards_total - facts.shards_owned, 0)
    text = f"{missing} of {_many(facts.shards_total, 'shard')} without an owner."
    return {PLATFORM: AlarmReading(missing, text)}


def regions(facts: AlarmFacts) -> Readings | None:
    if facts.regions is None:
        return None
    return {f"region {one.name}": _away(one) for one in facts.regions}


def _away(one: OtherRegion) -> AlarmReading:
    held = f"; {_many(one.held_here, 'job')} held here for homes that are away"
    what = one.trouble or "gives no answer"
    text = f"The region {one.name} {what}{held if one.held_here else ''}."
    return AlarmReading(not one.answers, text)


def leases_lost(facts: AlarmFacts) -> Readings | None:
    if facts.leases_lost is None:
        return None
    text = (
        f"{_many(facts.leases_lost, 'run')} lost with dead or silent workers in the last"
        f" {span(LOST_WINDOW_SECONDS)}."
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


def autoscale(facts: AlarmFacts) -> Readings | None:
    if facts.at_maximum is None:
        return None
    return {f"pool {pool.name}": _short(pool) for pool in facts.at_maximum}


def _short(pool: PoolAtMaximum) -> AlarmReading:
    text = (
        f"The pool {pool.name} has its maximum of {_many(pool.maximum_workers, 'worker')} and needs"
        f" {pool.short_of} more."
    )
    return AlarmReading(pool.short_of, text)


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
