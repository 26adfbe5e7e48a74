"""The figures of `/metrics` as OTLP: read from the same registries, under the same names.

Nothing is counted a second time, so the two can never disagree. Counters are cumulative sums, and
histograms have the bounds of their buckets. A summary has no like in OTLP's data model as the SDK
has it: its count and its sum go out as sums of their own, as Prometheus shows them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric as Family

CUMULATIVE = AggregationTemporality.CUMULATIVE
SCOPE = InstrumentationScope("fairway")


class Times(NamedTuple):
    """Since when a sum counts, and until when."""

    start_ns: int
    now_ns: int


def families_of(registries: Iterable[CollectorRegistry]) -> list[Family]:
    """On the event loop, as `/metrics` does: what is counted there changes nowhere else."""
    return [family for registry in registries for family in registry.collect()]


def metrics_data(families: Sequence[Family], resource: Resource, times: Times) -> MetricsData:
    metrics = [metric for family in families for metric in _metrics(family, times)]
    scope = ScopeMetrics(scope=SCOPE, metrics=metrics, schema_url="")
    return MetricsData([ResourceMetrics(resource=resource, scope_metrics=[scope], schema_url="")])


def _metrics(family: Family, times: Times) -> list[Metric]:
    if family.type == "histogram":
        points = _histogram_points(family, times)
        return [_metric(family, family.name, Histogram(points, CUMULATIVE))] if points else []
    by_name: dict[str, list[NumberDataPoint]] = defaultdict(list)
    for sample in family.samples:
        if not sample.name.endswith("_created"):  # when it began is in each point
            by_name[sample.name].append(_point(sample, times, family.type))
    is_sum = family.type in ("counter", "summary")
    return [
        _metric(
            family, name, Sum(points, CUMULATIVE, is_monotonic=True) if is_sum else Gauge(points)
        )
        for name, points in by_name.items()
    ]


def _metric(family: Family, name: str, data: Any) -> Metric:
    unit = "s" if family.name.endswith("_seconds") else "By" if "_bytes" in family.name else "1"
    return Metric(name=name, description=family.documentation, unit=unit, data=data)


def _point(sample: Any, times: Times, kind: str) -> NumberDataPoint:
    return NumberDataPoint(
        attributes=dict(sample.labels),
        start_time_unix_nano=0 if kind == "gauge" else times.start_ns,
        time_unix_nano=times.now_ns,
        value=sample.value,
    )


def _histogram_points(family: Family, times: Times) -> list[HistogramDataPoint]:
    """By labels: Prometheus counts each bucket with all below it, OTLP by itself."""
    upto: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = defaultdict(list)
    sums: dict[tuple[tuple[str, str], ...], float] = {}
    for sample in family.samples:
        labels = tuple(sorted((k, v) for k, v in sample.labels.items() if k != "le"))
        if sample.name.endswith("_bucket"):
            upto[labels].append((float(sample.labels["le"]), sample.value))
        elif sample.name.endswith("_sum"):
            sums[labels] = sample.value
    points = []
    for labels, rows in upto.items():
        counts = [round(count) for _, count in rows]
        points.append(
            HistogramDataPoint(
                attributes=dict(labels),
                start_time_unix_nano=times.start_ns,
                time_unix_nano=times.now_ns,
                count=counts[-1],
                sum=sums.get(labels, 0.0),
                bucket_counts=[b - a for a, b in zip([0, *counts], counts, strict=False)],
                explicit_bounds=[bound for bound, _ in rows[:-1]],
                min=0.0,
                max=0.0,
            )
        )
    return points
