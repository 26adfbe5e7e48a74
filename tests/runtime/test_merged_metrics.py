"""Metrics of several processes as one text: counts add up, whoever is asked and whoever died."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Gauge, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from tests.properties import tried

from fairway.api.operators.kept_text import read_text, write_text
from fairway.core.insight.merged_metrics import (
    ADDED,
    GREATEST,
    LEAST,
    counts_of,
    merged,
    parsed,
    restricted,
)
from fairway.runtime.telemetry import Metrics
from fairway.services.regions.region_metrics import RegionMetrics

#: What one process saw: jobs accepted, refused by code, times of pick-up, queued and the oldest.
SEEN = st.tuples(
    st.integers(0, 9),
    st.dictionaries(st.sampled_from(["A b", 'C"}', "\\"]), st.integers(1, 9)),
    st.lists(st.sampled_from([0.0, 0.25, 7.0, 900.0]), max_size=5),
    st.integers(0, 9),
    st.integers(0, 9),
)
Seen = tuple[int, dict[str, int], list[float], int, int]


def metrics_of(seen: Sequence[Seen]) -> str:
    """All of this counted in one process."""
    metrics = Metrics()
    for accepted, refused, pickups, queued, oldest in seen:
        metrics.accepted.inc(accepted)
        for code, count in refused.items():
            metrics.refused.labels(code).inc(count)
        metrics.pickup.observe_many("short", pickups)
        metrics.queued.labels("short").inc(queued)
        gauge = metrics.oldest.labels("short")
        gauge.set(max(oldest, gauge._value.get()))
    return generate_latest(metrics.registry).decode()


def values(text: str) -> dict[str, float]:
    """Without when each count began, which no two processes share."""
    families = parsed(text).values()
    return {k: v for one in families if "_created" not in one.name for k, v in one.samples.items()}


@tried()
@given(st.lists(SEEN, min_size=1, max_size=4))
def test_it_is_as_if_one_process_had_seen_all(seen: list[Seen]) -> None:
    text = merged([metrics_of([one]) for one in seen])
    assert values(text) == values(metrics_of(seen))
    assert list(text_string_to_metric_families(text)), "Prometheus' own parser reads it"


def test_by_name_several_processes_tell_what_one_tells() -> None:
    metrics = Metrics()
    metrics.refused.labels("A{b").inc()
    metrics.pickup.observe_many("short", [0.25])
    whole = generate_latest(metrics.registry).decode()
    for name in ("fairway_jobs_refused_total", "fairway_pickup_seconds_bucket", "nothing"):
        alone = generate_latest(metrics.registry.restricted_registry({name})).decode()
        assert values(restricted(whole, {name})) == values(alone)
        assert bool(values(alone)) == (name != "nothing")


@tried()
@given(SEEN, SEEN)
def test_what_a_former_life_counted_is_carried_on(former: Seen, present: Seen) -> None:
    kept = counts_of(metrics_of([former]))
    found = values(merged([metrics_of([present]), kept]))
    assert found["fairway_jobs_accepted_total"] == former[0] + present[0]
    assert found['fairway_jobs_queued{pool="short"}'] == present[3], "it holds no more"


def test_one_text_stays_as_it_is() -> None:
    text = metrics_of([(3, {"A b": 2}, [0.25], 5, 6)])
    assert merged([text]) == text
    assert merged([text, ""]) == text


def test_of_every_gauge_it_is_said_how_processes_are_joined() -> None:
    metrics = Metrics()
    RegionMetrics(metrics.registry)
    gauges = {
        family.name
        for registry in metrics.registries
        for family in registry.collect()
        if family.type == "gauge"
    }
    assert gauges == ADDED | GREATEST | LEAST
    assert len(ADDED) + len(GREATEST) + len(LEAST) == len(gauges), "each once"
    assert isinstance(metrics.queued, Gauge)


def test_a_kept_text_is_whole_or_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may die, or be read, while it writes: no sum may fall by that."""
    descriptor, pwrite = os.memfd_create("kept"), os.pwrite
    try:
        assert read_text(descriptor) == b""
        write_text(descriptor, b"as long as this")
        write_text(descriptor, b"shorter")
        assert read_text(descriptor) == b"shorter"
        for _ in range(2):
            with monkeypatch.context() as cut:
                cut.setattr(os, "pwrite", lambda to, text, at: pwrite(to, text[:-1], at))
                write_text(descriptor, b"never all of it")
            assert read_text(descriptor) == b"shorter"
        write_text(descriptor, b"the next")
        assert read_text(descriptor) == b"the next"
    finally:
        os.close(descriptor)
