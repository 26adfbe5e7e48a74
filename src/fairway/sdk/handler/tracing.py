"""A run within a trace: spans that the handler makes by OpenTelemetry come below the run's own.

Without OpenTelemetry there is `ctx.traceparent` and nothing else. It is looked for when the first
run comes that belongs to a trace; a worker whose jobs belong to none never loads it.
"""

from __future__ import annotations

from typing import Any

from fairway.core.insight.trace_context import is_sampled, span_id_of, trace_id_of, trace_of


def attach(traceparent: str) -> Any:
    """The trace is the current one from here on; answers what `detach` takes."""
    trace = trace_of(traceparent)
    if trace is None:
        return None
    try:
        from opentelemetry import context
        from opentelemetry import trace as otel
    except ImportError:
        return None
    within = otel.SpanContext(
        trace_id_of(trace), span_id_of(trace), True, otel.TraceFlags(int(is_sampled(trace)))
    )
    return context.attach(otel.set_span_in_context(otel.NonRecordingSpan(within)))


def detach(attached: Any) -> None:
    if attached is not None:
        from opentelemetry import context

        context.detach(attached)
