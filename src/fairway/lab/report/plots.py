"""How the lab's plots look: one style, few colours, words where they are needed.

The only file that loads matplotlib; it comes with the extra `fairway[lab]`.
"""

from __future__ import annotations

import io
from typing import Any

from fairway import FairwayError
from fairway.lab.report.content import Drawing

INK, SOFT, GRID = "#1d2733", "#66727f", "#e6eaee"
BLUE, GREEN, ORANGE, RED, VIOLET, GREY = (
    "#2563eb",
    "#0f9d76",
    "#e8800c",
    "#d7263d",
    "#7c4dff",
    "#9aa5b1",
)
SERIES = (BLUE, GREEN, ORANGE, VIOLET, RED, GREY)

STYLE: Any = {
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "axes.edgecolor": GRID,
    "axes.labelcolor": SOFT,
    "axes.titlecolor": INK,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.labelsize": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "lines.linewidth": 2.0,
    "lines.solid_capstyle": "round",
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "legend.labelcolor": INK,
    "font.family": ["DejaVu Sans"],
    "svg.hashsalt": "fairway",  # the same measurement gives the same file
}


class PlotsMissing(FairwayError):
    """matplotlib is not installed."""


def render(drawing: Drawing) -> tuple[bytes, bytes]:
    """(PNG, SVG) of one drawing."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise PlotsMissing("Plots need matplotlib: install fairway[lab].") from None
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=drawing.size, layout="constrained")
        drawing.draw(figure)
        png, svg = io.BytesIO(), io.BytesIO()
        figure.savefig(png, format="png", dpi=150)
        figure.savefig(svg, format="svg", metadata={"Date": None})
    return png.getvalue(), svg.getvalue()


def label_line(axes: Any, x: float, text: str, colour: str = RED) -> None:
    """A dashed upright with its meaning beside it."""
    axes.axvline(x, color=colour, linewidth=1.2, linestyle=(0, (4, 3)))
    axes.annotate(
        text,
        (x, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(4, -2),
        textcoords="offset points",
        color=colour,
        fontsize=8.5,
        va="top",
    )


def from_zero(axes: Any, top: float | None = None) -> None:
    axes.set_ylim(0, top)
    axes.margins(x=0.02)


def plain_log(axes: Any) -> None:
    """A logarithmic scale of seconds, in words people say."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: spell_seconds(value))
    axes.yaxis.set_minor_formatter(lambda value, _: "")


def spell_seconds(value: float) -> str:
    return f"{value * 1000:g} ms" if value < 1 else f"{value:g} s"
