"""The autoscaler's patience, pool by pool, as data."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fairway.core.pools import LONG, SHORT, Pool

DOWN_AFTER_SECONDS_MIN = 1.0
DOWN_AFTER_SECONDS_MAX = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleRules:
    up_age_seconds: float = 5.0  # a runnable job that waited longer wants more workers
    is_ahead: bool = True  # more workers also before jobs wait, when the flow fills the slots
    utilisation_max: float = 0.8  # so full the mean flow may make the slots
    warm_share: float = 0.0  # slots kept idle beyond that
    drain_seconds: float = 60.0  # in which what waits should be gone
    quiet_age_seconds: float | None = 1.0  # of waits, before workers go; None: any
    down_after_seconds: float = 300.0  # of quiet, or of a worker's being idle where `needs_idle`
    needs_idle: bool = False  # only whoever was idle for that long may go
    up_cooldown_seconds: float = 15.0  # a new worker needs some time to be of use
    down_step_share: float = 0.2  # of the workers, between two cooldowns

    @property
    def down_cooldown_seconds(self) -> float:
        return 0.0 if self.needs_idle else self.down_after_seconds / 5

    @property
    def head_room(self) -> float:
        """What the mean of busy slots is multiplied by."""
        return (1 + self.warm_share) / self.utilisation_max


_SHORT = ScaleRules(warm_share=0.1, drain_seconds=15.0)
_USUAL = ScaleRules()
_LONG = ScaleRules(
    up_age_seconds=60.0,
    is_ahead=False,
    utilisation_max=1.0,
    drain_seconds=600.0,
    quiet_age_seconds=None,
    down_after_seconds=1800.0,
    needs_idle=True,
    up_cooldown_seconds=60.0,
)


def rules_of(pool: Pool, down_after_seconds: float | None = None) -> ScaleRules:
    """A pool whose jobs may wait as long as long ones is treated as patiently."""
    found = _USUAL
    if pool.pickup_target_seconds <= SHORT.pickup_target_seconds:
        found = _SHORT
    elif pool.pickup_target_seconds >= LONG.pickup_target_seconds:
        found = _LONG
    if down_after_seconds is None:
        return found
    return replace(found, down_after_seconds=down_after_seconds)
