"""When requests are meant to start: decided before the run, so that no reply can move them.

A plan is a sorted list of seconds from the start of the run. *Paced* puts one arrival at a random
moment of each interval: the rate is exact, the spacing is not. *Poisson* is what many independent
people look like; near the limit its bunches alone make a queue.
"""

from __future__ import annotations

import random
from typing import Literal

Shape = Literal["paced", "poisson"]


def plan(
    per_second: float, seconds: float, *, shape: Shape = "paced", seed: int | str = 1
) -> list[float]:
    """Arrivals in [0, seconds), in order; the same seed gives the same plan."""
    dice = random.Random(f"{seed}/{per_second}/{seconds}/{shape}")
    if shape == "poisson":
        return _poisson(per_second, seconds, dice)
    count = round(per_second * seconds)
    return [(n + dice.random()) / per_second for n in range(count)]


def _poisson(per_second: float, seconds: float, dice: random.Random) -> list[float]:
    found, at = [], dice.expovariate(per_second)
    while at < seconds:
        found.append(at)
        at += dice.expovariate(per_second)
    return found


def skewed_weights(count: int, skew: float) -> list[float]:
    """Falling weights: the first is `skew` times the last."""
    return [skew ** (-n / max(1, count - 1)) for n in range(count)]
