"""Does the simulator tell the truth? The same scenario on real processes and in virtual time.

Compared are waits (mean, median and 99th percentile by group) and shares of the slot-time while
everybody had work. The arrivals are the same in both, job by job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairway.lab.experiments.fleet import arrivals
from fairway.lab.experiments.stage import Stage
from fairway.lab.measure.figures import Story
from fairway.lab.platform import lab_platform
from fairway.lab.report.content import Finding, Report, Table, seconds
from fairway.lab.scenario import Scenario
from fairway.lab.screen import bar
from fairway.rig.quantile import quantile
from fairway.simulate.played import Play

AGREES = 0.05
SETTLE_SECONDS = 5.0


class Compared(NamedTuple):
    name: str
    real: float
    simulated: float

    @property
    def distance(self) -> float:
        """Of the simulated from the real, as a part of the real."""
        return abs(self.simulated - self.real) / self.real if self.real else abs(self.simulated)


def compare(
    real: Sequence[Story], simulated: Sequence[Story], span: tuple[float, float]
) -> list[Compared]:
    found = []
    for group in sorted({story.group for story in real}):
        waits = [_waits(stories, group) for stories in (real, simulated)]
        for name, measure in _MEASURES.items():
            found.append(Compared(f"{group}: wait {name}", *map(measure, waits)))
    shares = [_shares(stories, span) for stories in (real, simulated)]
    return found + [
        Compared(f"{group}: share", *(one.get(group, 0.0) for one in shares))
        for group in sorted(shares[0])
    ]


def _waits(stories: Sequence[Story], group: str) -> list[float]:
    mine = [one for one in stories if one.group == group and one.started is not None]
    return [one.started - one.accepted for one in mine if one.started is not None]


def _mean(values: list[float]) -> float:
    return sum(values) / max(len(values), 1)


_MEASURES = {
    "mean": _mean,
    "p50": lambda values: quantile(values, 0.5),
    "p99": lambda values: quantile(values, 0.99),
}


def _shares(stories: Sequence[Story], span: tuple[float, float]) -> dict[str, float]:
    """Parts of the slot-time within some seconds, by group."""
    held: dict[str, float] = {}
    for one in stories:
        if one.started is not None and one.finished is not None:
            inside = max(min(one.finished, span[1]) - max(one.started, span[0]), 0.0)
            held[one.group] = held.get(one.group, 0.0) + inside
    total = sum(held.values()) or 1.0
    return {group: part / total for group, part in held.items()}


async def run(scenario: Scenario, seed: int) -> Report:
    """Plays it on a platform of its own, then in virtual time."""
    planned = arrivals(scenario, seed)
    async with lab_platform(**scenario.settings) as platform:
        stage = Stage(scenario, platform)
        await stage.furnish()
        with bar(scenario.title, len(planned)) as progress:
            await stage.play(planned, progress.step)
            progress.say("working off what is left")
            await stage.drain()
        real = await stage.stories()
    report = compared_report(scenario, real, Play(scenario, seed).run())
    report.doubts += stage.complaints
    report.notes += stage.notes
    return report


def compared_report(
    scenario: Scenario, real: Sequence[Story], simulated: Sequence[Story]
) -> Report:
    found = compare(real, simulated, (SETTLE_SECONDS, scenario.seconds))
    worst = max(found, key=lambda one: one.distance)
    return Report(
        name=f"agreement-{scenario.name}",
        brand="Fairway simulate",
        title="Real processes and virtual time",
        question=f"The scenario “{scenario.title}”, played by a server, workers and PostgreSQL, and"
        " simulated: do waits and shares agree?",
        found=f"The largest distance is {worst.distance:.1%} ({worst.name}).",
        data={
            "experiment": "agreement",
            "scenario": scenario.name,
            "compared": [one._asdict() | {"distance": one.distance} for one in found],
        },
        findings=[
            Finding(one.name, f"{one.distance:.1%} apart", f"≤ {AGREES:.0%}",
                    one.distance <= AGREES)
            for one in found
        ],
        tables=[
            Table(
                "Waits and shares",
                ["", "real", "simulated", "apart"],
                [
                    [
                        one.name,
                        _told(one, one.real),
                        _told(one, one.simulated),
                        f"{one.distance:.1%}",
                    ]
                    for one in found
                ],
            )
        ],
        notes=[
            f"Shares are of the slot-time from {SETTLE_SECONDS:g} s to {scenario.seconds:g} s,"
            " while everybody had work.",
            f"{len(real):,} real jobs, {len(simulated):,} simulated ones, planned alike.",
        ],
    )  # fmt: skip


def _told(one: Compared, value: float) -> str:
    return f"{value:.1%}" if one.name.endswith("share") else seconds(value)
