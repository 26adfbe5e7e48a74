"""`fairway lab knee`: one worker × 10 slots × 1.5 s, offered 2 → 14 a second. Where does it bend?

Each step starts on an empty queue and holds its rate for a while; what is left over is worked off
before the next. The window that counts is a whole number of service times, so that the beat of the
slots does not decide how many ends fall into it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fairway.lab.experiments.knee_plots import curve, over_time
from fairway.lab.experiments.steps import (
    SLOTS,
    Step,
    StepSetup,
    complaints,
    moments,
    run_step,
    scaled,
)
from fairway.lab.measure.bend import RULE, Bend, Point, find_bend, slope
from fairway.lab.platform import POOL, lab_platform
from fairway.lab.report.content import Drawing, Finding, Report, Table, number, seconds
from fairway.rig.quantile import quantile

RATES = (2.0, 4.0, 5.0, 6.0, 6.5, 7.0, 8.0, 10.0, 12.0, 14.0)
HOLD_SERVICES = 30  # a step lasts this many service times
BELOW = 0.95  # steps up to this share of the bend are "below" it
P99_BELOW_SECONDS = 2.5
REPLY_P95_SECONDS = 0.015
BEND_ERROR_MAX = 0.05


async def run(setup: StepSetup) -> Report:
    async with lab_platform() as platform:
        await platform.start_worker("worker", {POOL: SLOTS})
        rates = [rate * setup.speed for rate in RATES]
        steps = [await run_step(platform, setup, rate, HOLD_SERVICES) for rate in rates]
    return report(setup, steps)


# -- what it means -----------------------------------------------------------------------------


class KneeReading(NamedTuple):
    """The steps, judged."""

    points: list[Point]
    bend: Bend
    below: list[Step]
    p99_below: float
    reply_p95: float
    reply_p95_above: float
    growth_below: float  # of the depth, in jobs per service time, the worst of the steps below
    completed_above: float  # the worst share of the limit that was still completed beyond it


def read(setup: StepSetup, steps: list[Step]) -> KneeReading:
    points = [step.point(setup.service) for step in steps]
    bend = find_bend(points)
    limit = bend.limit if bend.limit == bend.limit else float("inf")
    below = [s for s, p in zip(steps, points, strict=True) if p.offered <= BELOW * limit]
    above = [(s, p) for s, p in zip(steps, points, strict=True) if p.offered > limit]
    return KneeReading(
        points,
        bend,
        below,
        quantile((x.latency for s in below for x in s.counted(setup.service)), 0.99),
        quantile((x for s in steps for x in s.replies()), 0.95),
        max((quantile(s.replies(), 0.95) for s, _ in above), default=float("nan")),
        max((_growth(s, setup.service) for s in below), default=float("nan")),
        min((p.completed / limit for _, p in above), default=float("nan")),
    )


def _growth(step: Step, service: float) -> float:
    left, right = (edge - step.began for edge in step.window(service))
    inside = [(m.at / service, m.depth) for m in moments(step, service) if left <= m.at < right]
    return slope([(x, float(y)) for x, y in inside])


def report(setup: StepSetup, steps: list[Step]) -> Report:
    reading = read(setup, steps)
    limit, theory = reading.bend.limit, setup.theory
    lost = sum(len(step.load.lost) for step in steps)
    return Report(
        name="knee",
        title="Where one worker bends",
        question=f"One worker with {SLOTS} slots; every job waits {setup.service:g} s. How much can"
        " it take, and what do people notice when more arrives?",
        found=f"One worker follows the load up to {limit:.3g} jobs a second and stays there; theory"
        f" (slots ÷ service time) says {theory:.3g}.",
        answer="Below the bend 99 of 100 are done within"
        f" {seconds(reading.p99_below)}. Beyond it the queue grows, and the front door"
        f" answers within {seconds(reading.reply_p95_above)} (p95).",
        data=_data(setup, steps, reading) | {"lost": lost},
        findings=_findings(setup, reading, lost),
        drawings=_drawings(setup, steps, reading),
        tables=[_table(setup, steps, reading)],
        notes=_notes(setup),
        doubts=complaints(steps),
    )


def _findings(setup: StepSetup, reading: KneeReading, lost: int) -> list[Finding]:
    limit, theory = reading.bend.limit, setup.theory
    error = abs(limit - theory) / theory
    slow = P99_BELOW_SECONDS / setup.speed
    return [
        Finding(
            "bend",
            number(limit, "/s"),
            f"within 5 % of {theory:.3g}/s",
            error <= BEND_ERROR_MAX,
        ),
        Finding(
            "p99 below the bend",
            seconds(reading.p99_below),
            f"< {seconds(slow)}",
            reading.p99_below < slow,
        ),
        Finding(
            "front door p95",
            seconds(reading.reply_p95),
            "< 15 ms",
            reading.reply_p95 < REPLY_P95_SECONDS,
        ),
        Finding(
            "front door p95 beyond it",
            seconds(reading.reply_p95_above),
            "< 15 ms",
            reading.reply_p95_above < REPLY_P95_SECONDS,
        ),
        Finding(
            "completed beyond it",
            f"{reading.completed_above:.1%}",
            "≥ 95 % of the bend",
            reading.completed_above >= 0.95,
        ),
        Finding(
            "depth below the bend",
            _growth_text(setup, reading),
            f"flat: growth in {setup.service:g} s",
            abs(reading.growth_below) < 0.1,
        ),
        Finding("accepted and lost", str(lost), "0", lost == 0),
    ]


def _growth_text(setup: StepSetup, reading: KneeReading) -> str:
    return f"{reading.growth_below:+.2f} jobs"


def _data(setup: StepSetup, steps: list[Step], reading: KneeReading) -> dict[str, Any]:
    return {
        "experiment": "knee",
        "knee_per_s": reading.bend.limit,
        "theory_per_s": setup.theory,
        "knee_error": abs(reading.bend.limit - setup.theory) / setup.theory,
        "p99_below_s": reading.p99_below,
        "front_door_p95_ms": reading.reply_p95 * 1000,
        "front_door_p95_above_ms": reading.reply_p95_above * 1000,
        "completed_above_share": reading.completed_above,
        "depth_growth_below": reading.growth_below,
        "rule": RULE,
        "served_up_to_per_s": reading.bend.served_up_to,
        "not_served_from_per_s": reading.bend.not_served_from,
        "slots": SLOTS,
        "service_s": setup.service,
        "speed": setup.speed,
        "seed": setup.seed,
        "arrivals": setup.arrivals,
        "steps": [
            {
                "offered_per_s": point.offered,
                "completed_per_s": point.completed,
                "p50_s": quantile((x.latency for x in step.counted(setup.service)), 0.5),
                "p99_s": quantile((x.latency for x in step.counted(setup.service)), 0.99),
                "front_door_p95_ms": quantile(step.replies(), 0.95) * 1000,
                "timeline": [moment._asdict() for moment in moments(step, setup.service)],
            }
            for step, point in zip(steps, reading.points, strict=True)
        ],
    }


def _drawings(setup: StepSetup, steps: list[Step], reading: KneeReading) -> list[Drawing]:
    stretches = [(step.rate, moments(step, setup.service)) for step in steps]
    waits = [
        (
            point.offered,
            quantile((x.latency for x in step.counted(setup.service)), 0.5),
            quantile((x.latency for x in step.counted(setup.service)), 0.99),
            quantile(step.replies(), 0.95),
        )
        for step, point in zip(steps, reading.points, strict=True)
    ]
    return [
        Drawing(
            "knee-curve",
            "Left: completed against offered work; the dashed line is theory. Right: time from the"
            " intended start to the score, and the front door's reply, on one logarithmic scale.",
            lambda figure: curve(figure, reading.points, reading.bend, setup.theory, waits),
            (9.6, 3.9),
        ),
        Drawing(
            "knee-over-time",
            "The whole run, step after step, each worked off before the next. Top: offered and"
            " completed a second. Middle: jobs that wait for a slot. Bottom: time to the score.",
            lambda figure: over_time(figure, stretches, setup.theory),
            (9.6, 6.2),
        ),
    ]


def _table(setup: StepSetup, steps: list[Step], reading: KneeReading) -> Table:
    rows = []
    for step, point in zip(steps, reading.points, strict=True):
        waits = [life.latency for life in step.counted(setup.service)]
        depth = max((m.depth for m in moments(step, setup.service)), default=0)
        rows.append(
            [
                number(point.offered, "/s"),
                number(point.completed, "/s"),
                seconds(quantile(waits, 0.5)),
                seconds(quantile(waits, 0.99)),
                str(depth),
                seconds(quantile(step.replies(), 0.95)),
            ]
        )
    head = ["offered", "completed", "p50", "p99", "deepest queue", "front door p95"]
    return Table("Step by step", head, rows)


def _notes(setup: StepSetup) -> list[str]:
    found = [
        f"Bend by a named rule. {RULE[0].upper()}{RULE[1:]}.",
        "Open loop: arrivals are planned before the run and latency counts from the planned moment,"
        " so a slow reply cannot hide the next one.",
        f"Arrivals are {setup.arrivals}"
        + (
            ": one at a random moment of each interval, so that the limit is the system's and not"
            " that of bunches in the arrivals."
            if setup.arrivals == "paced"
            else ": bunches in the arrivals make a queue well before the limit; that is no fault of"
            " the system, it is what independent people look like."
        ),
    ]
    return found + scaled(setup)
