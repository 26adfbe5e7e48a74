"""Spans of jobs, by OpenTelemetry's conventions for messaging: one trace from POST to webhook.

    send <type>          producer: a job is accepted, until it is on disk     (server)
    ├ dispatch <pool>    internal: it waited, until a lease was granted       (server)
    ├ process <type>     consumer: one attempt; the handler's spans are below (worker)
    └ deliver <event>    client: a webhook's receiver is called               (server)

Whether a job has spans is decided when it is accepted, and kept with it: all others cost a look at
a flag. No payload, result or text of an error is ever in a span; names of tenants and types are.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Self, TypeAlias

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from fairway.core.errors import FairwayError
from fairway.core.ids import TenantId
from fairway.core.insight.trace_context import (
    is_sampled,
    packed,
    span_id_of,
    trace_id_of,
    unsampled,
)
from fairway.core.insight.trace_sampling import Sampling, TraceSampler
from fairway.core.job import QueuedJob, due_ms_of
from fairway.core.tenant import Tenant

Value: TypeAlias = str | int | float | bool
TEXT_MAX = 128  # characters of what others name: a kind of error, a worker

SYSTEM = {"messaging.system": "fairway"}


class JobSpan:
    """One that is under way. `trace` is what comes below it belongs to."""

    __slots__ = ("_span", "trace")

    def __init__(self, span: Span) -> None:
        self._span = span
        context = span.get_span_context()
        self.trace = packed(context.trace_id, context.span_id, is_sampled=True)

    def say(self, facts: Mapping[str, Value]) -> None:
        self._span.set_attributes({name: _short(value) for name, value in facts.items()})

    def fail(self, kind: str) -> None:
        """`kind` is of a few: a failure class, a problem's code, a status."""
        self._span.set_attribute("error.type", _short(kind))
        self._span.set_status(StatusCode.ERROR)

    def end(self) -> None:
        self._span.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self.fail(error.code if isinstance(error, FairwayError) else type(error).__name__)
        self.end()


class JobSpans:
    def __init__(self, provider: TracerProvider, sampling: Sampling) -> None:
        self._tracer = provider.get_tracer("fairway")
        self._sampler = TraceSampler(sampling)

    def sends(
        self, parent: bytes | None, tenant: Tenant, job_type: str
    ) -> tuple[bytes | None, JobSpan | None]:
        """A job is accepted: which trace it keeps, and its span, if it is to have any."""
        if not self._sampler.wants(parent, random.random()):
            return None if parent is None else unsampled(parent), None
        if not self._sampler.has_room(tenant.id, time.monotonic_ns() // 1000):
            return None if parent is None else unsampled(parent), None
        span = self._begin(
            f"send {job_type}",
            parent,
            SpanKind.PRODUCER,
            {
                "messaging.operation.name": "send",
                "messaging.operation.type": "send",
                "messaging.destination.name": job_type,
                "fairway.tenant": tenant.name,
            },
        )
        return span.trace, span

    def keeps(self, trace: bytes, tenant: TenantId) -> bytes:
        """What a job keeps of its trace that comes in by another way than alone: one of many of a
        flow, or what a run starts. It may be sampled if the trace is, and there is room for it."""
        now_us, chance = time.monotonic_ns() // 1000, random.random()
        is_taken = is_sampled(trace) and self._sampler.takes(trace, tenant, chance, now_us)
        return trace if is_taken else unsampled(trace)

    def granted(self, jobs: Iterable[QueuedJob], pool: str, worker: str, now_ms: int) -> None:
        """Leases of these are on their way; of most of them nobody wants to know."""
        for job in jobs:
            if job.trace is None or not is_sampled(job.trace):
                continue
            due_ms = min(due_ms_of(job), now_ms)
            span = self._begin(
                f"dispatch {pool}",
                job.trace,
                SpanKind.INTERNAL,
                {
                    "messaging.message.id": job.id,
                    "fairway.pool": pool,
                    "fairway.worker": worker,
                    "fairway.attempt": job.attempts + 1,
                    "fairway.delivery": job.deliveries + 1,
                    "fairway.wait_seconds": (now_ms - due_ms) / 1000,
                },
                start_ns=due_ms * 1_000_000,
            )
            span.end()

    def runs(self, parent: bytes, job_type: str, facts: Mapping[str, Value]) -> JobSpan:
        """An attempt begins."""
        named = {
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.destination.name": job_type,
        }
        return self._begin(f"process {job_type}", parent, SpanKind.CONSUMER, {**named, **facts})

    def delivers(self, parent: bytes, event: str, facts: Mapping[str, Value]) -> JobSpan:
        """A webhook's receiver is about to be called."""
        named = {"fairway.event": event, "http.request.method": "POST"}
        return self._begin(f"deliver {event}", parent, SpanKind.CLIENT, {**named, **facts})

    def _begin(
        self,
        name: str,
        parent: bytes | None,
        kind: SpanKind,
        facts: Mapping[str, Value],
        start_ns: int | None = None,
    ) -> JobSpan:
        within = None
        if parent is not None:
            within = SpanContext(
                trace_id_of(parent), span_id_of(parent), True, TraceFlags(TraceFlags.SAMPLED)
            )
        said = {key: _short(value) for key, value in {**SYSTEM, **facts}.items()}
        # Never the context of whoever calls: a job's trace is the job's alone.
        below = NonRecordingSpan(within) if within is not None else _NOBODY
        context = set_span_in_context(below)
        return JobSpan(
            self._tracer.start_span(name, context, kind, attributes=said, start_time=start_ns)
        )


_NOBODY = NonRecordingSpan(SpanContext(0, 0, False))


def _short(value: Value) -> Value:
    return value[:TEXT_MAX] if isinstance(value, str) else value
