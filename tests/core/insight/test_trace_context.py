"""Trace context as W3C has it: what is well formed comes back as it was, all else is no trace."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.properties import tried

from fairway.core.ids import TenantId
from fairway.core.insight.trace_context import (
    TRACE_BYTES,
    is_sampled,
    packed,
    span_id_of,
    trace_id_of,
    trace_of,
    traceparent_of,
    unsampled,
)
from fairway.core.insight.trace_sampling import Sampling, TraceSampler

TEXT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SAMPLED = trace_of(TEXT)
ONE, OTHER = TenantId(1), TenantId(2)

trace_ids, span_ids = st.integers(1, (1 << 128) - 1), st.integers(1, (1 << 64) - 1)


@given(trace_ids, span_ids, st.booleans())
@tried()
def test_what_is_packed_comes_back(trace_id: int, span_id: int, sampled: bool) -> None:
    trace = packed(trace_id, span_id, is_sampled=sampled)
    assert len(trace) == TRACE_BYTES
    assert trace_of(traceparent_of(trace)) == trace
    assert (trace_id_of(trace), span_id_of(trace), is_sampled(trace)) == (
        trace_id,
        span_id,
        sampled,
    )
    assert not is_sampled(unsampled(trace))
    assert unsampled(trace)[:24] == trace[:24]


@given(st.text("0123456789abcdef-x", min_size=50, max_size=60))
@tried()
def test_no_text_is_refused_by_an_error_and_none_grows(text: str) -> None:
    trace = trace_of(text)
    assert trace is None or (
        len(trace) == TRACE_BYTES and traceparent_of(trace)[:53] == "00" + text[2:53]
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        TEXT[:-1],
        TEXT + "-more",  # of version 00 there is no more
        TEXT.upper(),
        "ff" + TEXT[2:],
        "00-" + "0" * 32 + TEXT[35:],
        TEXT[:36] + "0" * 16 + TEXT[52:],
        TEXT.replace("-", "_"),
        TEXT + "\n",
        "cc" + TEXT[2:] + "x",
        "cc" + TEXT[2:] + "-" + "x" * 300,
    ],
)
def test_what_is_not_well_formed_is_no_trace(text: str) -> None:
    assert trace_of(text) is None


def test_a_version_to_come_is_read_as_far_as_it_is_known() -> None:
    assert trace_of("cc" + TEXT[2:] + "-what-the-future-will-be-like") == SAMPLED
    assert trace_of("cc" + TEXT[2:]) == SAMPLED
    assert traceparent_of(trace_of(TEXT[:-2] + "ff") or b"")[-2:] == "03"  # flags nobody knows yet


@given(
    st.lists(st.tuples(st.sampled_from([ONE, OTHER]), st.integers(0, 50_000)), max_size=300),
    st.integers(1, 40),
)
@tried()
def test_whoever_asks_for_spans_gets_no_more_than_there_is(
    asked: list[tuple[TenantId, int]], per_second: int
) -> None:
    """By each tenant no more than a fourth, over any time; and in all no more than all."""
    sampler, now_us = TraceSampler(Sampling(0.0, per_second=per_second)), 0
    taken: dict[TenantId, int] = {ONE: 0, OTHER: 0}
    for tenant, later_us in asked:
        now_us += later_us
        taken[tenant] += sampler.takes(SAMPLED, tenant, 0.5, now_us)
    share, seconds = max(per_second // 4, 1), now_us / 1e6
    assert all(count <= share * (1 + seconds) for count in taken.values())
    assert sum(taken.values()) <= per_second * (1 + seconds)


def test_a_job_follows_its_trace_and_else_its_luck() -> None:
    assert SAMPLED is not None
    sampler = TraceSampler(Sampling(0.25))
    assert sampler.takes(SAMPLED, ONE, 0.99, 0)
    assert not sampler.takes(unsampled(SAMPLED), ONE, 0.0, 0)
    assert sampler.takes(None, ONE, 0.24, 0)
    assert not sampler.takes(None, ONE, 0.25, 0)
    alone = TraceSampler(Sampling(0.25, follows_parents=False))
    assert not alone.takes(SAMPLED, ONE, 0.3, 0)
    assert alone.takes(unsampled(SAMPLED), ONE, 0.2, 0)


def test_one_who_asks_for_all_leaves_others_theirs() -> None:
    sampler = TraceSampler(Sampling(0.0, per_second=8))
    assert sum(sampler.takes(SAMPLED, ONE, 0.5, 0) for _ in range(100)) == 2
    assert sampler.takes(SAMPLED, OTHER, 0.5, 0)


@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.01, 0.3, 1.0]), st.integers(0, 300))
def test_places_are_drawn_as_if_each_had_been_asked(seed: int, ratio: float, count: int) -> None:
    """In order, each once, and as many as the ratio says, whatever the size of a batch."""
    sampler, dice = TraceSampler(Sampling(ratio)), random.Random(seed)
    found = sampler.places(count, dice.random)
    assert found == sorted(set(found))
    assert all(0 <= place < count for place in found)
    drawn = sum(len(sampler.places(25, dice.random)) for _ in range(2000))
    expected = 50_000 * ratio
    assert abs(drawn - expected) <= 6 * (expected * (1 - ratio)) ** 0.5
