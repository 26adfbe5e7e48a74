"""Telemetry: whole batches in one call, and the same numbers Prometheus would have counted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from fairway.runtime.metric_shapes import (
    OTHER_TYPES,
    TYPE_SECONDS,
    TYPES_MAX,
    BulkHistogram,
    TypeSummary,
)
from fairway.runtime.telemetry import SECONDS, Metrics

spans = st.floats(0, 100, allow_nan=False)


def lines(registry: CollectorRegistry) -> list[str]:
    text = generate_latest(registry).decode()
    return [line for line in text.splitlines() if line.startswith("x_") and "created" not in line]


@given(st.lists(st.lists(st.sampled_from(SECONDS) | spans, max_size=20), max_size=5))
def test_a_bulk_histogram_counts_as_an_ordinary_one_does(batches: list[list[float]]) -> None:
    bulk = BulkHistogram("x", "help", SECONDS)
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    ours.register(bulk)
    plain = Histogram("x", "help", ["pool"], buckets=SECONDS, registry=theirs)
    for batch in batches:
        bulk.observe_many("short", batch)
        for value in batch:
            plain.labels("short").observe(value)
    if any(batches):
        left, right = lines(ours), lines(theirs)
        numbers = [[float(line.rsplit(" ", 1)[1]) for line in side] for side in (left, right)]
        assert len(left) == len(right)
        assert all(abs(a - b) < 1e-6 for a, b in zip(*numbers, strict=True))


def test_labels_are_kept_apart() -> None:
    bulk = BulkHistogram("x", "help", (1, 2))
    bulk.observe_many("short", [0.5])
    bulk.observe_many("long", [1.5, 9])
    (family,) = bulk.collect()
    counts = {s.labels["pool"]: s.value for s in family.samples if s.name == "x_count"}
    assert counts == {"short": 1, "long": 2}


def test_every_metric_of_a_server_is_ours_by_name_and_explained() -> None:
    metrics = Metrics()
    families = list(metrics.registry.collect())
    assert len(families) > 10
    for family in families:
        assert family.name.startswith("fairway_")
        assert family.documentation.endswith(".")
    generate_latest(metrics.registry)


def test_labels_are_bounded() -> None:
    """Never a tenant, a job or a type: their number has no limit."""
    metrics = Metrics()
    metrics.lateness.observe("email.send", 1.5)
    for family in metrics.registry.collect():
        for sample in family.samples:
            assert not {"tenant", "job", "type"} & set(sample.labels)
    assert "email.send" not in generate_latest(metrics.registry).decode()
    assert b'fairway_lateness_seconds_sum{type="email.send"} 1.5' in generate_latest(
        metrics.by_type
    )


def test_a_type_that_was_not_seen_for_long_gives_its_label_up() -> None:
    now = [0.0]
    summary = TypeSummary("x", "help", lambda: now[0])
    for number in range(TYPES_MAX):
        summary.observe(f"t{number}", 1.0)
    summary.observe("late", 2.0)  # finds no room
    now[0] = TYPE_SECONDS / 2
    summary.observe("t0", 5.0)
    now[0] = TYPE_SECONDS + 1
    summary.observe("late", 3.0)
    family, _ = summary.collect()
    counts = {one.labels["type"]: one.value for one in family.samples if "count" in one.name}
    assert counts == {"t0": 2, "late": 1, OTHER_TYPES: TYPES_MAX}, "and nothing is lost"
    now[0] += 2 * TYPE_SECONDS
    family, greatest = summary.collect()
    assert {one.labels["type"]: one.value for one in greatest.samples} == {OTHER_TYPES: 5.0}
