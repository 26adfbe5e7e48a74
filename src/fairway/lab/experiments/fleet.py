"""`fairway lab fleet`: a scenario file on a platform of its own, from the first job to the last.

All arrivals are planned before the run: who sends what, when. `stage.py` plays them; the platform's
own record says afterwards what became of every accepted job.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from fairway.lab.experiments import fleet_report
from fairway.lab.experiments.stage import Arrival, Stage
from fairway.lab.measure.figures import figures
from fairway.lab.platform import lab_platform
from fairway.lab.report.content import Report
from fairway.lab.scenario import Group, Scenario, faster
from fairway.lab.screen import bar
from fairway.rig.arrivals import plan, skewed_weights


class FleetSetup(NamedTuple):
    scenario: Scenario
    speed: float = 1.0
    seed: int = 1


def arrivals(scenario: Scenario, seed: int) -> list[Arrival]:
    """Everybody's arrivals in one line; the same seed gives the same."""
    found = [one for group in scenario.tenants for one in _of_group(group, scenario.seconds, seed)]
    return sorted(found, key=lambda arrival: arrival.at)


def _of_group(group: Group, seconds: float, seed: int) -> list[Arrival]:
    if not group.per_second:
        return []
    own = f"{seed}/{group.name}"  # groups of the same rate do not march in step
    dice = random.Random(own)
    moments = plan(group.per_second, seconds, shape="poisson", seed=own)
    weights = skewed_weights(group.count, group.skew)
    tenants = dice.choices(range(group.count), weights, k=len(moments))
    kinds = dice.choices(group.jobs, [kind.share for kind in group.jobs], k=len(moments))
    return [
        Arrival(at, group.name, tenant, kind)
        for at, tenant, kind in zip(moments, tenants, kinds, strict=True)
    ]


async def run(setup: FleetSetup) -> Report:
    scenario = faster(setup.scenario, setup.speed)
    planned = arrivals(scenario, setup.seed)
    async with lab_platform(**scenario.settings) as platform:
        stage = Stage(scenario, platform)
        await stage.furnish()
        with bar(scenario.title, len(planned)) as progress:
            await stage.play(planned, progress.step)
            progress.say("working off what is left")
            await stage.drain()
        stories = await stage.stories()
        calls = stage.calls()
    windows = {window.name: (window.start, window.end) for window in scenario.windows}
    found = figures(stories, windows) | calls
    report = fleet_report.report(scenario, stories, found, setup.speed)
    report.data |= {"seed": setup.seed}
    report.notes += stage.notes
    report.doubts += stage.complaints
    return report
