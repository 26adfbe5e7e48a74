"""Pools: classes of workers by duration or resource, as plain data.

The three built-in pools are the table of the design. A pool's number is what hot rows carry;
its name is what people say. This file holds facts about pools; it decides nothing about jobs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LeaseMode = Literal["lazy", "durable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    number: int
    name: str
    lease_mode: LeaseMode  # lazy: `running` is written only if the job outlives `lazy_after_ms`
    lease_seconds: float  # a worker silent for this long has lost its leases
    slots_default: int
    attempts_max: int
    pickup_target_seconds: float
    estimate_seconds: float  # first guess at a run, before any was measured


SHORT = Pool(
    number=1, name="short", lease_mode="lazy", lease_seconds=10, slots_default=50,
    attempts_max=5, pickup_target_seconds=0.5, estimate_seconds=0.3,
)  # fmt: skip
MEDIUM = Pool(
    number=2, name="medium", lease_mode="durable", lease_seconds=300, slots_default=8,
    attempts_max=3, pickup_target_seconds=5, estimate_seconds=10,
)  # fmt: skip
LONG = Pool(
    number=3, name="long", lease_mode="durable", lease_seconds=90, slots_default=2,
    attempts_max=2, pickup_target_seconds=60, estimate_seconds=10,
)  # fmt: skip

BUILT_IN = (SHORT, MEDIUM, LONG)
BY_NAME = {pool.name: pool for pool in BUILT_IN}
BY_NUMBER = {pool.number: pool for pool in BUILT_IN}
