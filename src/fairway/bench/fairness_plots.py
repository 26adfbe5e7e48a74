"""Plots of `fairway bench fairness`: slots held over time against slots that would be fair."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairway.bench.run_log import RunLog
from fairway.bench.sharing import Shares

COLOURS = ("#2a6fdb", "#e07a2f", "#3a9d5d", "#9b59b6", "#c0392b")
INK, FAINT = "#24292f", "#d0d7de"
STEP_SECONDS = 1.0
NAMED_MAX = 5  # more tenants than this are drawn as one crowd


def draw(shares: list[Shares], figures: dict[str, float], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for found in shares:
        crowd = len(found.entitled_slots) > NAMED_MAX
        figure = _crowd(found, figures) if crowd else _over_time(found)
        name = "".join(c if c.isalnum() else "-" for c in found.title.lower()).strip("-")
        figure.savefig(folder / f"{name}.svg", bbox_inches="tight")
        plt.close(figure)


def _over_time(shares: Shares) -> Figure:
    figure, axes = _paper(shares.title, "seconds", "slots held")
    for colour, (who, fair) in zip(COLOURS, shares.entitled_slots.items(), strict=False):
        moments, held = _held(shares.log, who, shares.seconds)
        axes.plot(moments, held, color=colour, linewidth=1.8, label=who)
        axes.axhline(fair, color=colour, linewidth=1, linestyle=(0, (4, 3)), alpha=0.7)
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, shares.seconds)
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=5)
    axes.annotate(
        "dashed: the fair number of slots",
        (0.99, 1.02),
        xycoords="axes fraction",
        ha="right",
        fontsize=8,
        color="#57606a",
    )
    return figure


def _crowd(shares: Shares, figures: dict[str, float]) -> Figure:
    log, seconds = shares.log, shares.seconds
    got = log.slot_seconds(log.began, log.began + seconds)
    ratios = sorted(got.get(w, 0.0) / (fair * seconds) for w, fair in shares.entitled_slots.items())
    figure, axes = _paper(shares.title, "tenants, from least to most", "received / entitled")
    axes.bar(range(len(ratios)), ratios, color=COLOURS[0], width=0.8)
    axes.axhline(1.0, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    axes.set_ylim(0, max(1.25, max(ratios) * 1.1))
    axes.annotate(
        f"Jain's index {figures['jain_60s']:.4f}",
        (0.99, 1.02),
        xycoords="axes fraction",
        ha="right",
        fontsize=8,
        color="#57606a",
    )
    return figure


def _held(log: RunLog, who: str, seconds: float) -> tuple[list[float], list[float]]:
    steps = int(seconds / STEP_SECONDS)
    moments = [(step + 0.5) * STEP_SECONDS for step in range(steps)]
    held = []
    for step in range(steps):
        start = log.began + step * STEP_SECONDS
        held.append(log.slot_seconds(start, start + STEP_SECONDS).get(who, 0.0) / STEP_SECONDS)
    return moments, held


def _paper(title: str, x: str, y: str) -> tuple[Figure, Axes]:
    figure, axes = plt.subplots(figsize=(7.2, 3.2))
    figure.patch.set_facecolor("white")
    axes.set_title(title, loc="left", fontsize=11, color=INK, fontweight="bold")
    axes.set_xlabel(x, color=INK, fontsize=9)
    axes.set_ylabel(y, color=INK, fontsize=9)
    axes.tick_params(colors=INK, labelsize=8, length=0)
    axes.grid(axis="y", color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    return figure, axes
