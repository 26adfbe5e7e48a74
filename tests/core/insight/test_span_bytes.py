"""What is written by hand is what OpenTelemetry's own code writes of the same spans."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans as by_library
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource

from fairway.core.insight.span_bytes import (
    CLIENT,
    CONSUMER,
    INTERNAL,
    PRODUCER,
    SpanRecord,
    Value,
    encode_spans,
)
from fairway.runtime.otlp import readable

ABOUT: dict[str, Value] = {"service.name": "fairway-server", "process.pid": 1234}
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
numbers = st.integers(-(1 << 63), (1 << 63) - 1)
values = texts | numbers | st.booleans() | st.floats(allow_nan=False)
traces = st.binary(min_size=24, max_size=24).filter(lambda one: any(one[:16]) and any(one[16:]))
moments = st.integers(1, (1 << 63) - 1)
spans = st.builds(
    SpanRecord,
    name=texts,
    kind=st.sampled_from([INTERNAL, CLIENT, PRODUCER, CONSUMER]),
    trace=traces.map(lambda one: one + b"\x01"),
    parent=st.none() | traces.map(lambda one: one + b"\x01"),
    start_ns=moments,
    end_ns=moments,
    facts=st.dictionaries(texts.filter(bool), values, max_size=5),
    is_error=st.booleans(),
)


@given(st.lists(spans, min_size=1, max_size=4))
def test_both_say_the_same(given_spans: list[SpanRecord]) -> None:
    resource = Resource(ABOUT, "https://a.schema")
    ours = ExportTraceServiceRequest.FromString(
        encode_spans(ABOUT, "https://a.schema", given_spans)
    )
    theirs = by_library([readable(one, resource) for one in given_spans])
    assert ours == theirs


def test_a_lone_half_of_a_character_is_replaced() -> None:
    one = SpanRecord("\ud800", INTERNAL, bytes(25), None, 1, 2, {"key": "\udfff"}, False)
    assert ExportTraceServiceRequest.FromString(encode_spans({}, "", [one]))
