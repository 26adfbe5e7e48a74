"""What a report says, before anybody draws it: plain values.

An experiment fills one of these in; `page.py` writes it. Figures are functions that draw on
matplotlib axes, so that nothing here needs matplotlib.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from fairway.rig.verdict import Verdict, judge


class Mark(Enum):
    """How a figure stands to its aim, and the sign for it."""

    GOOD = "✓"
    BAD = "✗"
    OPEN = "?"
    PLAIN = " "


class Finding(NamedTuple):
    """One figure with its aim. `holds` is None when there is nothing to hold."""

    name: str
    value: str
    aim: str = ""
    holds: bool | None = None

    def mark(self, verdict: Verdict) -> Mark:
        """An aim that was missed in a run that nobody may judge was not missed by what ran."""
        if self.holds is False and verdict is Verdict.UNJUDGED:
            return Mark.OPEN
        return {True: Mark.GOOD, False: Mark.BAD, None: Mark.PLAIN}[self.holds]


class Drawing(NamedTuple):
    """A figure: its name as a file, what to see in it, and who draws it."""

    name: str
    caption: str
    draw: Callable[[Any], None]  # gets a matplotlib Figure
    size: tuple[float, float] = (9.0, 3.4)


class Table(NamedTuple):
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(kw_only=True)
class Report:
    name: str
    title: str
    question: str
    found: str  # in one plain sentence
    answer: str = ""  # and what there is to say beyond it
    data: dict[str, Any]  # what `--json` prints
    brand: str = "Fairway lab"  # whose page it is
    others: str = "not measured"  # what else the machine was busy with
    findings: list[Finding] = field(default_factory=list)
    drawings: list[Drawing] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what was scaled, what to mind
    doubts: list[str] = field(default_factory=list)  # why not to believe it

    @property
    def verdict(self) -> Verdict:
        return judge((finding.holds for finding in self.findings), self.doubts)

    @property
    def word(self) -> str:
        """The verdict as people are told; what has no aims cannot have held."""
        has_aims = any(one.holds is not None for one in self.findings)
        return self.verdict.words if has_aims or self.doubts else "found"

    @property
    def missed(self) -> list[str]:
        """Aims that were not met."""
        return [
            f"{one.name} is {one.value} and should be {one.aim}"
            for one in self.findings
            if one.holds is False
        ]


def number(value: float, unit: str = "", digits: int = 3) -> str:
    """Short enough to read, long enough to compare: `digits` that count."""
    if value != value:
        return "–"
    if value in (float("inf"), float("-inf")):
        return "∞"
    text = f"{value:,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"
    return f"{text} {unit}".strip()


def seconds(value: float) -> str:
    if value != value:
        return "–"
    return f"{value * 1000:.3g} ms" if abs(value) < 1 else f"{value:.3g} s"
