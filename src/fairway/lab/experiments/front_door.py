"""`fairway lab front-door`: how fast people get their 202, and how fast their score, side by side.

The same requests, the same moment, three loads: easy, nearly full, half as much again as fits.
"""

from __future__ import annotations

from typing import Any

from fairway.lab.experiments.steps import SLOTS, Step, StepSetup, complaints, run_step, scaled
from fairway.lab.platform import POOL, lab_platform
from fairway.lab.report.content import Drawing, Finding, Report, Table, number, seconds
from fairway.lab.report.plots import BLUE, GREEN, GREY, ORANGE, plain_log
from fairway.rig.quantile import quantile

LOADS = (0.6, 0.9, 1.5)  # of what one worker can do
HOLD_SERVICES = 20
REPLY_P95_SECONDS = 0.015


async def run(setup: StepSetup) -> Report:
    async with lab_platform() as platform:
        await platform.start_worker("worker", {POOL: SLOTS})
        rates = [load * setup.theory for load in LOADS]
        steps = [await run_step(platform, setup, rate, HOLD_SERVICES) for rate in rates]
    return report(setup, steps)


def report(setup: StepSetup, steps: list[Step]) -> Report:
    replies = [quantile(step.replies(), 0.95) for step in steps]
    scores = [quantile((x.latency for x in step.load.lives), 0.95) for step in steps]
    lost = sum(len(step.load.lost) for step in steps)
    return Report(
        name="front-door",
        title="The front door and the kitchen",
        question="People wait for two things: that their application was taken, and that it was"
        " scored. Does the one suffer when the other does?",
        found=f"When half as much again arrives as fits, the reply takes {seconds(replies[-1])}"
        f" (p95), and the score {seconds(scores[-1])}.",
        answer=f"At an easy load they take {seconds(replies[0])} and {seconds(scores[0])}.",
        data={
            "experiment": "front-door",
            "offered_per_s": [step.rate for step in steps],
            "front_door_p95_ms": [reply * 1000 for reply in replies],
            "scored_p95_s": scores,
            "lost": lost,
            "speed": setup.speed,
            "seed": setup.seed,
        },
        findings=[
            Finding(
                "reply p95, overloaded",
                seconds(replies[-1]),
                "< 15 ms",
                replies[-1] < REPLY_P95_SECONDS,
            ),
            Finding("score p95, overloaded", seconds(scores[-1])),
            Finding("reply p95, easy", seconds(replies[0])),
            Finding("score p95, easy", seconds(scores[0])),
            Finding("accepted and lost", str(lost), "0", lost == 0),
        ],
        drawings=[
            Drawing(
                "front-door",
                "Every request of the run, on one logarithmic scale: green is its"
                " reply, orange its score, at the moment it was meant to be sent.",
                lambda figure: _draw(figure, setup, steps),
                (9.6, 4.2),
            ),
        ],
        tables=[_table(steps)],
        notes=["Both are counted from the intended start of the same request.", *scaled(setup)],
        doubts=complaints(steps),
    )


def _draw(figure: Any, setup: StepSetup, steps: list[Step]) -> None:
    axes = figure.subplots()
    shift = 0.0
    for step in steps:
        shots, lives = step.load.volley.shots, step.load.lives
        first = step.rate == steps[0].rate
        axes.scatter(
            [shift + x.intended - step.began for x in lives],
            [x.latency for x in lives],
            s=9,
            color=ORANGE,
            alpha=0.7,
            linewidths=0,
            label="score" if first else None,
        )
        axes.scatter(
            [shift + x.intended - step.began for x in shots],
            [x.reply_seconds for x in shots],
            s=9,
            color=GREEN,
            alpha=0.7,
            linewidths=0,
            label="reply" if first else None,
        )
        axes.annotate(
            f"{step.rate:.3g}/s offered · {step.rate / setup.theory:.0%} of what fits",
            (shift, 1.02),
            xycoords=("data", "axes fraction"),
            fontsize=8.5,
            color=BLUE,
        )
        shift += step.ended - step.began
        axes.axvline(shift, color=GREY, linewidth=0.7)
    plain_log(axes)
    axes.margins(x=0.01)
    axes.set_xlabel("seconds of offered load")
    axes.legend(loc="center right", markerscale=2)


def _table(steps: list[Step]) -> Table:
    rows = []
    for step in steps:
        replies, scores = step.replies(), [life.latency for life in step.load.lives]
        rows.append(
            [
                number(step.rate, "/s"),
                *(seconds(quantile(replies, q)) for q in (0.5, 0.95, 0.99)),
                *(seconds(quantile(scores, q)) for q in (0.5, 0.95, 0.99)),
            ]
        )
    head = ["offered", "reply p50", "p95", "p99", "score p50", "p95", "p99"]
    return Table("Side by side", head, rows)
