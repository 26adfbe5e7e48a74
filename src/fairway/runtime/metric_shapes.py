"""Metrics that take a whole batch in one cheap call, and labels that have a bound.

Shapes only: which figures there are stands in `telemetry.py`.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import (
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)

TYPES_MAX = 500  # job types with a label of their own
TYPE_SECONDS = 6 * 3600.0  # that one keeps it without being seen
OTHER_TYPES = "other"


class BulkHistogram:
    """A histogram that takes a whole batch of observations in one cheap call."""

    def __init__(self, name: str, help_text: str, buckets: tuple[float, ...]) -> None:
        self.name, self.help_text, self.buckets = name, help_text, buckets
        self._counts: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}

    def observe_many(self, label: str, values: Iterable[float]) -> None:
        counts = self._counts.setdefault(label, [0] * (len(self.buckets) + 1))
        total = 0.0
        for value in values:
            counts[bisect_left(self.buckets, value)] += 1
            total += value
        self._sums[label] = self._sums.get(label, 0.0) + total

    def describe(self) -> Iterator[HistogramMetricFamily]:
        """For the registry: who asks for one metric by name looks at no other."""
        yield HistogramMetricFamily(self.name, self.help_text, labels=["pool"])

    def collect(self) -> Iterator[HistogramMetricFamily]:
        family = HistogramMetricFamily(self.name, self.help_text, labels=["pool"])
        for label, counts in self._counts.items():
            running, rows = 0, []
            for bound, count in zip((*self.buckets, float("inf")), counts, strict=True):
                running += count
                rows.append(("+Inf" if bound == float("inf") else str(bound), running))
            family.add_metric([label], rows, self._sums[label])
        yield family


class TypeSummary:
    """Count, sum and greatest of a value by job type; types beyond a bound share one label.

    A type that was not seen for long loses its label: what it had is told with the others', and
    whoever comes next finds room.
    """

    def __init__(
        self, name: str, help_text: str, now_seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self.name, self.help_text = name, help_text
        self._now_seconds = now_seconds
        self._found: dict[str, list[float]] = {}
        self._seen: dict[str, float] = {}  # when each was last seen, the longest ago first

    def observe(self, job_type: str, value: float) -> None:
        label = self._label(job_type)
        self._add(label, 1, value, value)
        if label != OTHER_TYPES:
            self._seen.pop(label, None)
            self._seen[label] = self._now_seconds()

    def _label(self, job_type: str) -> str:
        if job_type in self._found:
            return job_type
        if len(self._seen) >= TYPES_MAX:
            self._age()
        return job_type if len(self._seen) < TYPES_MAX else OTHER_TYPES

    def _add(self, label: str, count: float, total: float, most: float) -> None:
        row = self._found.setdefault(label, [0.0, 0.0, 0.0])
        row[0] += count
        row[1] += total
        row[2] = max(row[2], most)

    def _age(self) -> None:
        before = self._now_seconds() - TYPE_SECONDS
        while self._seen and (oldest := next(iter(self._seen.items())))[1] < before:
            del self._seen[oldest[0]]
            self._add(OTHER_TYPES, *self._found.pop(oldest[0]))

    def describe(self) -> Iterator[Metric]:
        """As of a `BulkHistogram`."""
        yield SummaryMetricFamily(self.name, self.help_text, labels=["type"])
        yield GaugeMetricFamily(f"{self.name}_max", self.help_text, labels=["type"])

    def collect(self) -> Iterator[Metric]:
        self._age()
        summary = SummaryMetricFamily(self.name, self.help_text, labels=["type"])
        greatest = GaugeMetricFamily(f"{self.name}_max", self.help_text, labels=["type"])
        for label, (count, total, most) in self._found.items():
            summary.add_metric([label], round(count), total)
            greatest.add_metric([label], most)
        yield summary
        yield greatest
