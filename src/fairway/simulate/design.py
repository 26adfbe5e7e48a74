"""The fleet of the design: 110 000 tenants, 2 billion jobs a day, a mix from milliseconds to hours.

90 % of the jobs take milliseconds, 9 % seconds, 1 % minutes and 0.01 % hours. Tenants burst to
seven times their mean, a wave goes over the hour, a part of the jobs is due at full minutes, some
fail. Pure values and sums; the same seed gives the same arrivals. `capacity.py` counts slots by the
same means, so that the sheet and the simulation speak of one fleet.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from fairway.core.ids import TypeId
from fairway.core.pools import LONG, MEDIUM, SHORT, Pool
from fairway.core.tenant import Tenant
from fairway.rig.arrivals import skewed_weights
from fairway.simulate.virtual_time import SECOND_US
from fairway.simulate.work import Arrival, Kind, tenant_of

DAY_SECONDS = 86_400
MINUTE_US = 60 * SECOND_US
PAYMENTS = "payments"

BURST_FACTOR = 7.0
BURST_SHARE = 0.05  # of its minutes a tenant bursts
WAVE = 0.25  # up and down around the mean, once an hour
LATER_SHARE = 0.02  # of short and medium jobs is due at the next full minute
FAILS_SHARE = 0.01  # of first runs raise


class Runs(NamedTuple):
    """How long runs take, in seconds: any order of magnitude between the two as often as another.

    Its mean is exact, and so is that of what runs already when one looks.
    """

    least: float
    most: float

    @property
    def mean(self) -> float:
        return (self.most - self.least) / math.log(self.most / self.least)

    def draw(self, chance: float) -> float:
        return self.least * math.exp(chance * math.log(self.most / self.least))

    def left(self, which: float, part: float) -> float:
        """How much is left of a run that is met under way: long ones are met more often."""
        return (self.least + (self.most - self.least) * which) * part


class Line(NamedTuple):
    """One line of the mix."""

    share: float  # of all jobs
    pool: Pool
    runs: Runs
    name: str
    dependency: str = ""
    breaks: bool = False


MIX = (
    Line(0.840, SHORT, Runs(0.01, 0.9), "short"),
    Line(0.050, SHORT, Runs(0.01, 0.9), "short, calls a provider", dependency=PAYMENTS),
    Line(0.009, SHORT, Runs(0.01, 0.9), "short, of a release that breaks", breaks=True),
    Line(0.001, SHORT, Runs(2.0, 4.0), "declared short, takes seconds"),
    Line(0.0899, MEDIUM, Runs(1.0, 30.0), "medium"),
    Line(0.01, LONG, Runs(60.0, 600.0), "long"),
    Line(0.0001, LONG, Runs(3_600.0, 14_400.0), "hours"),
)
KINDS = tuple(
    Kind(TypeId(number), line.name, line.pool.number, line.dependency, line.breaks)
    for number, line in enumerate(MIX, 1)
)


class TierShare(NamedTuple):
    tier: str
    tenants: int
    load: float  # part of all jobs
    skew: float  # the largest of the tier sends so many times as much as the smallest


TIER_SHARES = (
    TierShare("free", 100_000, 0.05, 100),
    TierShare("standard", 9_000, 0.40, 100),
    TierShare("pro", 950, 0.45, 10),
    TierShare("enterprise", 50, 0.10, 1),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Which part of the fleet, for how long."""

    jobs_per_day: float = 2e9
    shards: int = 64  # one of so many is simulated, with its part of tenants, jobs and slots
    seconds: float = 3_600.0
    seed: int = 1

    @property
    def jobs_per_second(self) -> float:
        """Of the part that is simulated."""
        return self.jobs_per_day / DAY_SECONDS / self.shards

    def busy_slots(self, pool: Pool) -> float:
        """Slots in use in the mean: the rate of jobs times how long they run."""
        return self.jobs_per_second * slot_seconds_a_job(pool)


def slot_seconds_a_job(pool: Pool) -> float:
    """Slot-seconds in a pool for each job of the whole mix. Types belong where their runs fit."""
    return sum(line.share * line.runs.mean for line in MIX if home_of(line) is pool)


def home_of(line: Line) -> Pool:
    """Where the classifier has its jobs run in the end."""
    return MEDIUM if line.pool is SHORT and line.runs.least > 1 else line.pool


def tenants_of(design: Design) -> tuple[list[Tenant], list[float]]:
    """The tenants of one shard, and which part of its jobs each sends."""
    tenants: list[Tenant] = []
    loads: list[float] = []
    for share in TIER_SHARES:
        count = max(round(share.tenants / design.shards), 1)
        weights = skewed_weights(count, share.skew)
        total = sum(weights)
        for number, weight in enumerate(weights):
            tenants.append(tenant_of(len(tenants) + 1, f"{share.tier}-{number}", share.tier))
            loads.append(share.load * weight / total)
    return tenants, loads


def arrivals(
    design: Design, tenants: Sequence[Tenant], loads: Sequence[float]
) -> Iterator[Arrival]:
    """In order of time; made a minute at a time, as they are asked for."""
    yield from _there_before(design, tenants, loads)
    for minute in range(math.ceil(design.seconds / 60)):
        dice = random.Random(f"{design.seed}/minute/{minute}")
        usual = (1 - BURST_SHARE * BURST_FACTOR) / (1 - BURST_SHARE)
        factors = [BURST_FACTOR if dice.random() < BURST_SHARE else usual for _ in tenants]
        cumulated = list(accumulate(load * f for load, f in zip(loads, factors, strict=True)))
        rate = design.jobs_per_second * cumulated[-1] * wave(minute)
        yield from _of_minute(dice, minute, rate, tenants, cumulated)


def wave(minute: int) -> float:
    return 1 + WAVE * math.sin(2 * math.pi * minute / 60)


def _of_minute(
    dice: random.Random,
    minute: int,
    per_second: float,
    tenants: Sequence[Tenant],
    cumulated: Sequence[float],
) -> Iterator[Arrival]:
    start_us, end_us = minute * MINUTE_US, (minute + 1) * MINUTE_US
    moments = _poisson(dice, per_second, start_us, end_us)
    whose = dice.choices(tenants, cum_weights=cumulated, k=len(moments))
    which = dice.choices(range(len(MIX)), [line.share for line in MIX], k=len(moments))
    for at_us, tenant, number in zip(moments, whose, which, strict=True):
        line, kind, chance = MIX[number], KINDS[number], dice.random
        is_later = line.pool is not LONG and chance() < LATER_SHARE
        yield Arrival(
            at_us,
            tenant.id,
            kind,
            round(line.runs.draw(chance()) * SECOND_US),
            end_us if is_later else 0,
            chance() < FAILS_SHARE,
        )


def _poisson(dice: random.Random, per_second: float, start_us: int, end_us: int) -> list[int]:
    found, at = list[int](), float(start_us)
    while (at := at + dice.expovariate(per_second) * SECOND_US) < end_us:
        found.append(int(at))
    return found


def _there_before(
    design: Design, tenants: Sequence[Tenant], loads: Sequence[float]
) -> Iterator[Arrival]:
    """What runs already when the hour begins, with what is left of it; its waits do not count."""
    dice = random.Random(f"{design.seed}/before")
    for line, kind in zip(MIX, KINDS, strict=True):
        count = round(design.jobs_per_second * line.share * line.runs.mean)
        for tenant in dice.choices(tenants, loads, k=count):
            left = line.runs.left(dice.random(), dice.random())
            yield Arrival(0, tenant.id, kind, round(left * SECOND_US), counts=False)
