"""Pools: classes of workers by duration or resource, as plain data.

The three built-in pools are the table of the design; operators add others by resource profile, such
as gpu. A pool's number is what hot rows carry; its name is what people say. This file holds facts
about pools; which pool a job type belongs in is decided in `pool_classifier.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from fairway.core.errors import InvalidRequest
from fairway.core.ids import PoolId

LeaseMode = Literal["lazy", "durable"]
RunMode = Literal["loop", "thread", "process"]
CheckpointRule = Literal["none", "optional", "expected"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    number: PoolId
    name: str
    lease_mode: LeaseMode  # lazy: `running` is written only if the job outlives `lazy_after_ms`
    lease_seconds: float  # a worker silent for this long has lost its leases
    slots_default: int
    run_mode: RunMode | None = None  # of jobs that declare none; None: by their function
    checkpoint: CheckpointRule  # expected: a job that runs past 5 min without one is worth a word
    attempts_max: int
    pickup_target_seconds: float
    estimate_seconds: float  # first guess at a run, before any was measured
    fits_seconds: float | None = None  # a pool of duration: the longest run that belongs in it
    overrun_seconds: float | None = None  # past this a run does harm to the others in the pool
    labels: tuple[str, ...] = ()  # a worker must have all of these
    reserved_share: int = 800  # per mille of the slots that floors of tenants may claim together
    is_plain: bool = field(init=False)  # its leases say nothing beyond the job

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_plain", self.run_mode is None and self.checkpoint == "none")


SHORT = Pool(
    number=PoolId(1),
    name="short",
    lease_mode="lazy",
    lease_seconds=10,
    slots_default=50,
    attempts_max=5,
    pickup_target_seconds=0.5,
    estimate_seconds=0.3,
    checkpoint="none",
    fits_seconds=1,
    overrun_seconds=10,
)
MEDIUM = Pool(
    number=PoolId(2),
    name="medium",
    lease_mode="durable",
    lease_seconds=300,
    slots_default=8,
    attempts_max=3,
    pickup_target_seconds=5,
    estimate_seconds=10,
    checkpoint="optional",
    fits_seconds=60,
    overrun_seconds=300,
)
LONG = Pool(
    number=PoolId(3),
    name="long",
    lease_mode="durable",
    lease_seconds=90,
    slots_default=2,
    run_mode="process",
    attempts_max=2,
    pickup_target_seconds=60,
    estimate_seconds=10,
    checkpoint="expected",
    fits_seconds=10 * 366 * 24 * 3600.0,
)

BUILT_IN = (SHORT, MEDIUM, LONG)
BY_NAME = {pool.name: pool for pool in BUILT_IN}


class _ByNumber(dict[PoolId, Pool]):
    """A pool that another server made a moment ago has careful terms until it is read."""

    def __missing__(self, number: PoolId) -> Pool:
        return Pool(
            number=number,
            name=f"pool-{number}",
            lease_mode="durable",
            lease_seconds=300,
            slots_default=1,
            attempts_max=3,
            pickup_target_seconds=60,
            estimate_seconds=10,
            checkpoint="optional",
        )


class PoolTable:
    """Every pool there is, by name and by number; the same two maps for as long as it lives."""

    def __init__(self, pools: Iterable[Pool] = BUILT_IN) -> None:
        self.by_name: dict[str, Pool] = {}
        self.by_number: dict[PoolId, Pool] = _ByNumber()
        self.learn(pools)

    def learn(self, pools: Iterable[Pool]) -> None:
        """Pools that are new or different."""
        for pool in pools:
            self.by_name[pool.name] = self.by_number[pool.number] = pool

    def named(self, name: str, field: str) -> Pool:
        """The pool of this name; `field` is where the name was given."""
        pool = self.by_name.get(name)
        if pool is None:
            raise InvalidRequest(
                f"There is no pool {name[:64]!r}; there are {', '.join(self.by_name)}.",
                code="UNKNOWN_POOL",
                field=field,
            )
        return pool

    def of_duration(self) -> list[Pool]:
        """The pools that are told apart by how long a run takes, fastest first."""
        timed = [(p.fits_seconds, p) for p in self.by_name.values() if p.fits_seconds is not None]
        return [pool for _, pool in sorted(timed, key=lambda pair: pair[0])]


def missing_labels(pool: Pool, labels: Iterable[str]) -> list[str]:
    """What a worker with these labels lacks for this pool."""
    return sorted(set(pool.labels) - set(labels))
