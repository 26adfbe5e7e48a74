"""What a scenario's run says: what was expected and whether it held, by window, group and pool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from fairway.lab.measure.figures import ALL, Bound, Story, bound
from fairway.lab.report.content import Drawing, Finding, Report, Table, number, seconds
from fairway.lab.report.plots import GREY, SERIES, from_zero, plain_log
from fairway.lab.scenario import Scenario
from fairway.rig.quantile import quantile

BINS = 60
BURST = 4  # so many times what ends makes a scale of its own


def report(
    scenario: Scenario, stories: list[Story], found: dict[str, float], speed: float
) -> Report:
    bounds = [bound(found, e.figure, e.against, e.most, e.least) for e in scenario.expect]
    lost = int(found.get("all/all/all/lost", 0))
    names = [e.says or _spoken(one.name) for e, one in zip(scenario.expect, bounds, strict=True)]
    return Report(
        name=f"fleet-{scenario.name}",
        title=scenario.title,
        question=scenario.question,
        found=f"{len(stories):,} jobs were accepted, {lost} were lost; {told(names, bounds)}.",
        data={
            "experiment": "fleet",
            "scenario": scenario.name,
            "accepted": len(stories),
            "lost": lost,
            "expected": [one._asdict() | {"holds": one.holds} for one in bounds],
            "figures": found,
            "speed": speed,
        },
        findings=[
            Finding("accepted and lost", str(lost), "0", lost == 0),
            *(
                Finding(name, _value(one), _aim(one), one.holds)
                for name, one in zip(names, bounds, strict=True)
            ),
        ],
        drawings=[
            Drawing(
                f"fleet-{scenario.name}",
                "Top: jobs accepted and ended a second. Bottom: time from acceptance to start, p99"
                " of what started in each moment, by group and pool. Dashed: what happened on the"
                " way.",
                lambda figure: _draw(figure, scenario, stories),
                (9.6, 5.4),
            )
        ],
        tables=[_table(found)],
        notes=[
            "Times are from acceptance to start (pick-up) and from the intended start to the end"
            " (latency). Lost: accepted, and without an end when the run's patience was over.",
            *([scenario.scaled] if scenario.scaled else []),
            *([f"Time-scaled {speed:g} times on top of that."] if speed != 1 else []),
        ],
    )


def told(names: Sequence[str], bounds: Sequence[Bound]) -> str:
    """What did not hold, each with what was asked of it; or that all did."""
    missed = [
        f"{name} was {_value(one)}, and {_aim(one)} was asked"
        for name, one in zip(names, bounds, strict=True)
        if not one.holds
    ]
    return "; ".join(missed) or "all that was expected held"


def _spoken(figure: str) -> str:
    return figure.replace("all/", "").replace("/", " · ").replace("_", " ")


def _value(one: Bound) -> str:
    return _in_unit(one, one.value)


def _in_unit(one: Bound, value: float) -> str:
    if "÷" in one.name:
        return number(value, "×")
    return seconds(value) if one.name.endswith("_s") else number(value)


def _aim(one: Bound) -> str:
    most = "" if one.most is None else f"≤ {_in_unit(one, one.most)}"
    least = "" if one.least is None else f"≥ {_in_unit(one, one.least)}"
    return " and ".join(part for part in (least, most) if part)


def _table(found: dict[str, float]) -> Table:
    paths = said_once({name.rpartition("/")[0] for name in found if name.endswith("/jobs")})
    rows = [
        [
            path.replace("/", " · "),
            f"{found[f'{path}/jobs']:,.0f}",
            f"{found[f'{path}/succeeded']:,.0f}",
            f"{found[f'{path}/dead']:,.0f}",
            f"{found[f'{path}/lost']:,.0f}",
            seconds(found[f"{path}/pickup_p50_s"]),
            seconds(found[f"{path}/pickup_p99_s"]),
            seconds(found[f"{path}/latency_p99_s"]),
            f"{found[f'{path}/attempts_mean']:.2f}",
        ]
        for path in paths
    ]
    head = [
        "window · group · pool",
        "jobs",
        "succeeded",
        "dead",
        "lost",
        "pick-up p50",
        "p99",
        "latency p99",
        "attempts",
    ]
    return Table("Figures", head, rows)


def said_once(paths: set[str]) -> list[str]:
    """Without those of `all` pools, or groups, where there is one: its own row says the same."""

    def is_of_one(path: str) -> bool:
        window, group, pool = path.split("/")
        pools = {one for one in paths if one.startswith(f"{window}/{group}/")} - {path}
        groups = {one.split("/")[1] for one in paths if one.startswith(f"{window}/")} - {ALL}
        return (pool == ALL and len(pools) == 1) or (group == ALL and len(groups) == 1)

    return sorted(path for path in paths if not is_of_one(path))


def _draw(figure: Any, scenario: Scenario, stories: list[Story]) -> None:
    rates, waits = figure.subplots(2, 1, sharex=True)
    last = max((s.finished or s.intended for s in stories), default=1.0)
    width = max(last, scenario.seconds) / BINS
    middle = [(n + 0.5) * width for n in range(BINS + 1)]
    most: list[int] = []
    for name, colour, times in (
        ("accepted", GREY, [s.accepted for s in stories]),
        ("ended", SERIES[0], [s.finished for s in stories if s.finished is not None]),
    ):
        counts = Counter(int(at / width) for at in times)
        most.append(max(counts.values(), default=0))
        rates.plot(middle, [counts[n] / width for n in range(BINS + 1)], color=colour, label=name)
    rates.set(title="Jobs a second")
    rates.legend(loc="upper right")
    if most[0] > BURST * most[1]:  # else what ended is a line at the bottom
        rates.set_yscale("symlog", linthresh=max(most[1] / width / BURST, 1.0))
        rates.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    from_zero(rates)
    lines = sorted({(s.group, s.pool) for s in stories})
    for (group, pool), colour in zip(lines, SERIES * 3, strict=False):
        ours = [s for s in stories if (s.group, s.pool) == (group, pool) and s.started is not None]
        waits.plot(
            middle,
            _p99(ours, width),
            color=colour,
            label=f"{group} · {pool}",
            linewidth=1.5,
            marker="o",
            markersize=2,
        )
    plain_log(waits)
    waits.set(title="Pick-up, p99 of each moment", xlabel="seconds")
    waits.legend(loc="best", ncols=2)
    for one in scenario.happenings:
        for axes in (rates, waits):
            axes.axvline(one.at, color=SERIES[4], linewidth=1, linestyle=(0, (4, 3)))
        rates.annotate(
            one.what.replace("_", " "),
            (one.at, 1),
            xytext=(3, -3),
            fontsize=8,
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            color=SERIES[4],
            va="top",
        )


def _p99(stories: list[Story], width: float) -> list[float]:
    waits: dict[int, list[float]] = {}
    for story in stories:
        assert story.started is not None
        waits.setdefault(int(story.started / width), []).append(story.started - story.accepted)
    return [  # a moment without jobs is a gap, not a zero
        max(1e-4, quantile(waits[n], 0.99)) if n in waits else float("nan") for n in range(BINS + 1)
    ]
