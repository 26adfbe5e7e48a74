"""What the experiments on scoring share: a rate held for a while, on jobs that wait 1.5 s.

A step begins on an empty queue and ends when all its jobs have. Its window leaves out the start and
is a whole number of service times, so that the beat of the slots does not decide what is counted.
"""

from __future__ import annotations

from typing import NamedTuple

from fairway.lab.load import Load, score_load
from fairway.lab.measure.bend import Point
from fairway.lab.measure.timeline import Life, Moment, rate_of, timeline
from fairway.lab.platform import LabPlatform
from fairway.lab.screen import bar
from fairway.rig.arrivals import Shape, plan

SLOTS = 10
SERVICE_SECONDS = 1.5
WARM_SERVICES = 2  # the first of a step do not count


class StepSetup(NamedTuple):
    """`speed` times faster: the service takes that much less, the rates are that much higher."""

    speed: float = 1.0
    seed: int = 1
    arrivals: Shape = "paced"

    @property
    def service(self) -> float:
        return SERVICE_SECONDS / self.speed

    @property
    def theory(self) -> float:
        """What one worker can do: slots ÷ service time."""
        return SLOTS / self.service


class Step(NamedTuple):
    rate: float
    began: float
    ended: float  # of the offered load; the rest is working off
    load: Load

    def window(self, service: float) -> tuple[float, float]:
        return self.began + WARM_SERVICES * service, self.ended

    def point(self, service: float) -> Point:
        left, right = self.window(service)
        lives = self.load.lives
        offered = rate_of((life.intended for life in lives), left, right)
        return Point(offered, rate_of((life.finished for life in lives), left, right))

    def counted(self, service: float) -> list[Life]:
        left, right = self.window(service)
        return [life for life in self.load.lives if left <= life.intended < right]

    def replies(self) -> list[float]:
        return self.load.replies_seconds


async def run_step(platform: LabPlatform, setup: StepSetup, rate: float, services: int) -> Step:
    """Offer `rate` for so many service times, then wait until all is worked off."""
    hold = services * setup.service
    arrivals = plan(rate, hold, shape=setup.arrivals, seed=setup.seed)
    with bar(f"offered {rate:g}/s", len(arrivals)) as progress:
        load = await score_load(platform, arrivals, setup.service, progress.step)
    return Step(rate, load.volley.began, load.volley.began + hold, load)


def moments(step: Step, service: float) -> list[Moment]:
    last = max((life.finished for life in step.load.lives), default=step.ended)
    return timeline(step.load.lives, step.began, max(last, step.ended), 2 * service)


def complaints(steps: list[Step]) -> list[str]:
    return [f"at {step.rate:g}/s {why}" for step in steps for why in step.load.volley.complaints]


def scaled(setup: StepSetup) -> list[str]:
    """The note that a time-scaled run carries."""
    if setup.speed == 1:
        return []
    return [
        f"Time-scaled: {setup.speed:g} times faster. The service takes {setup.service:g} s instead"
        f" of {SERVICE_SECONDS:g} s and rates are {setup.speed:g} times as high, so what the"
        " platform itself costs weighs that much more."
    ]
