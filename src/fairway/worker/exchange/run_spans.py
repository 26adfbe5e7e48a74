"""Spans of the runs of one worker: one for each attempt, from the lease to the report.

The keeper makes them, so a run that is killed with its process has its span all the same, and says
why. What the handler makes comes below: its lease names the span. Runs of jobs that were not
sampled when they were accepted cost a look at a field.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from fairway.core.insight.span_bytes import Value
from fairway.core.insight.trace_context import is_sampled, trace_of, traceparent_of
from fairway.runtime.otlp_spans import JobSpan, JobSpans
from fairway.wire.exchange import Lease, Report


class _NamedError(Struct):
    type: str = ""


_decode_error = msgspec.json.Decoder(_NamedError | None).decode


class RunSpans:
    def __init__(self, spans: JobSpans, worker: str) -> None:
        self._spans = spans
        self._worker = worker
        self._under_way: dict[str, JobSpan] = {}  # by job: no more than leases

    def begun(self, lease: Lease) -> Lease:
        """The same, within the span of this run, if it has one."""
        trace = None if lease.traceparent is None else trace_of(lease.traceparent)
        if trace is None or not is_sampled(trace):
            return lease
        span = self._spans.runs(trace, lease.type, self._facts(lease))
        self._under_way[lease.job] = span
        return replace(lease, traceparent=traceparent_of(span.trace))

    def ended(self, report: Report) -> None:
        span = self._under_way.pop(report.job, None)
        if span is None:
            return
        span.say({"fairway.outcome": report.kind, "fairway.ran_seconds": report.ran_us / 1e6})
        if report.failure is not None:
            if name := _name_of(report.error):
                span.say({"exception.type": name})
            span.fail(report.failure)
        span.end()

    def lost(self, jobs: Iterable[str]) -> None:
        """Their leases are others' by now."""
        for job in jobs:
            if (span := self._under_way.pop(job, None)) is not None:
                span.say({"fairway.outcome": "lost"})
                span.fail("lease_lost")
                span.end()

    def _facts(self, lease: Lease) -> dict[str, Value]:
        return {
            "messaging.message.id": lease.job,
            "messaging.client.id": self._worker,
            "fairway.tenant": lease.tenant,
            "fairway.pool": lease.pool,
            "fairway.attempt": lease.attempt,
            "fairway.delivery": lease.delivery,
        }


def _name_of(error: Raw) -> str:
    try:
        said = _decode_error(error)
    except (ValueError, RecursionError):  # user code said it
        return ""
    return "" if said is None else said.type
