"""The two pictures of the knee: the load-response curve, and the run over time."""

from __future__ import annotations

from typing import Any

from fairway.lab.measure.bend import Bend, Point
from fairway.lab.measure.timeline import Moment
from fairway.lab.report.plots import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    from_zero,
    label_line,
    plain_log,
)

Waits = list[tuple[float, float, float, float]]  # offered, p50, p99, reply p95


def curve(figure: Any, points: list[Point], bend: Bend, theory: float, waits: Waits) -> None:
    left, right = figure.subplots(1, 2)
    offered = [point.offered for point in points]
    top = max(offered, default=1) * 1.06
    left.plot(
        [0, theory, top],
        [0, theory, theory],
        color=GREY,
        linestyle=(0, (3, 3)),
        linewidth=1.3,
        label="theory",
    )
    left.plot(
        offered,
        [point.completed for point in points],
        color=BLUE,
        marker="o",
        markersize=5,
        label="measured",
    )
    if bend.limit == bend.limit:
        label_line(left, bend.limit, f"bend {bend.limit:.3g}/s")
    left.set(title="Completed jobs a second", xlabel="offered jobs a second", xlim=(0, top))
    left.legend(loc="lower right")
    from_zero(left, top)
    for name, column, colour in (
        ("p99 to the score", 2, RED),
        ("p50 to the score", 1, ORANGE),
        ("front door p95", 3, GREEN),
    ):
        right.plot(
            [row[0] for row in waits],
            [row[column] for row in waits],
            color=colour,
            marker="o",
            markersize=4,
            label=name,
        )
    plain_log(right)
    right.set(
        title="Seconds, from the intended start", xlabel="offered jobs a second", xlim=(0, top)
    )
    right.legend(loc="center right")


def over_time(figure: Any, stretches: list[tuple[float, list[Moment]]], theory: float) -> None:
    rates, depth, waits = figure.subplots(3, 1, sharex=True)
    shift, edges = 0.0, []
    series: list[tuple[float, Moment]] = []
    for rate, moments in stretches:
        edges.append((shift, rate))
        series += [(shift + moment.at, moment) for moment in moments]
        shift += (moments[-1].at + moments[0].at) if moments else 0.0
    at = [x for x, _ in series]
    rates.step(
        at, [m.offered for _, m in series], where="mid", color=GREY, linewidth=1.2, label="offered"
    )
    rates.step(
        at,
        [m.completed for _, m in series],
        where="mid",
        color=BLUE,
        linewidth=1.4,
        label="completed",
    )
    rates.axhline(theory, color=RED, linewidth=1.1, linestyle=(0, (4, 3)))
    rates.set_title("Jobs a second", pad=20)
    rates.legend(loc="upper left", ncols=2)
    depth.fill_between(at, [m.depth for _, m in series], color=ORANGE, alpha=0.25, linewidth=0)
    depth.plot(at, [m.depth for _, m in series], color=ORANGE, linewidth=1.6)
    depth.set(title="Jobs that wait for a slot")
    waits.plot(at, [m.p99 for _, m in series], color=RED, linewidth=1.6, label="p99")
    waits.plot(at, [m.p50 for _, m in series], color=ORANGE, linewidth=1.4, label="p50")
    waits.set(title="Seconds to the score, of what finished in each moment", xlabel="seconds")
    waits.legend(loc="upper left", ncols=2)
    for axes in (rates, depth, waits):
        from_zero(axes)
        for x, _ in edges[1:]:
            axes.axvline(x, color=GREY, linewidth=0.5, alpha=0.6)
    for x, rate in edges:
        rates.annotate(
            f"{rate:g}/s", (x, 1.03), xycoords=("data", "axes fraction"), fontsize=7.5, color=GREY
        )
