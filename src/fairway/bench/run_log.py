"""Who held which slots when, as the worker saw it: the facts that fairness is judged by.

The runner writes a line when a handler begins and one when it ends. Here they become spans, and
spans become slot-seconds in any window of time.
"""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path
from typing import NamedTuple


class Span(NamedTuple):
    who: str
    began: float
    ended: float


class RunLog:
    def __init__(self, spans: list[Span]) -> None:
        self.spans = sorted(spans, key=lambda span: span.began)

    @classmethod
    def read(cls, path: Path) -> RunLog:
        """Runs without an end were cut off with the worker: they held their slot to the last."""
        open_runs: dict[str, tuple[str, float]] = {}
        spans, last = [], 0.0
        for line in path.read_text().splitlines():
            mark, who, run, moment = line.split()
            last = max(last, float(moment))
            if mark == "+":
                open_runs[run] = (who, float(moment))
            elif run in open_runs:
                spans.append(Span(*open_runs.pop(run), float(moment)))
        return cls([*spans, *(Span(who, began, last) for who, began in open_runs.values())])

    @property
    def began(self) -> float:
        return self.spans[0].began

    def slot_seconds(self, start: float, end: float) -> dict[str, float]:
        """Slot-time by holder between two moments."""
        found: dict[str, float] = {}
        for span in self.spans:
            inside = min(span.ended, end) - max(span.began, start)
            if inside > 0:
                found[span.who] = found.get(span.who, 0.0) + inside
        return found

    def first_start(self, who: str, after: float) -> float | None:
        starts = [span.began for span in self.spans if span.who == who]
        place = bisect_left(starts, after)
        return starts[place] if place < len(starts) else None

    def most_at_once(self, names: set[str], start: float, end: float) -> int:
        """The most slots that these held at any moment between two."""
        changes = []
        for span in self.spans:
            if span.who in names and span.ended > start and span.began < end:
                changes += [(max(span.began, start), 1), (span.ended, -1)]
        most = held = 0
        for _, change in sorted(changes, key=lambda change: (change[0], change[1])):
            held += change
            most = max(most, held)
        return most


def worst_error(
    log: RunLog, weights: dict[str, float], windows: list[tuple[float, float]]
) -> float:
    """The largest |received / entitled - 1| of anyone in any of the windows.

    Entitled is a share of the slot-time that handlers had in the window: the moments in which a
    slot goes from one job to the next are nobody's. A window in which nobody ran, because the
    machine stood still, says nothing.
    """
    total, worst = sum(weights.values()), 0.0
    for start, end in windows:
        got = log.slot_seconds(start, end)
        given = sum(got.values())
        if given == 0:
            continue
        for who, weight in weights.items():
            entitled = given * weight / total
            worst = max(worst, abs(got.get(who, 0.0) / entitled - 1))
    return worst
