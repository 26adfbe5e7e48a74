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
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import NamedTuple, Self, TypeAlias

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

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

SYSTEM: dict[str, Value] = {"messaging.system": "fairway"}

_SCOPE = InstrumentationScope("fairway")
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_UNSET, _ERROR = Status(StatusCode.UNSET), Status(StatusCode.ERROR)


class _Made(NamedTuple):
    """What is known of a span when it begins."""

    name: str
    kind: SpanKind
    context: SpanContext
    parent: SpanContext | None
    resource: Resource
    start_ns: int


class JobSpan:
    """One that is under way. `trace` is what comes below it belongs to.

    Made without a tracer: what that looks up for every span (samplers, limits, locks) is known.
    """

    __slots__ = ("_add", "_facts", "_made", "_status", "trace")

    def __init__(
        self, made: _Made, facts: dict[str, Value], add: Callable[[ReadableSpan], None]
    ) -> None:
        self._made = made
        self._facts = facts
        self._status = _UNSET
        self._add = add
        self.trace = packed(made.context.trace_id, made.context.span_id, is_sampled=True)

    def say(self, facts: Mapping[str, Value]) -> None:
        for name, value in facts.items():
            self._facts[name] = _short(value)

    def fail(self, kind: str) -> None:
        """`kind` is of a few: a failure class, a problem's code, a status."""
        self._facts["error.type"] = _short(kind)
        self._status = _ERROR

    def end(self) -> None:
        made = self._made
        self._add(
            ReadableSpan(
                made.name,
                made.context,
                made.parent,
                made.resource,
                self._facts,
                kind=made.kind,
                status=self._status,
                start_time=made.start_ns,
                end_time=time.time_ns(),
                instrumentation_scope=_SCOPE,
            )
        )

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
    def __init__(
        self, add: Callable[[ReadableSpan], None], resource: Resource, sampling: Sampling
    ) -> None:
        """`add` is given each span as it ends, on any thread, and takes no time."""
        self._add = add
        self._resource = resource
        self._sampler = TraceSampler(sampling)

    def sends(
        self, parent: bytes | None, tenant: Tenant, job_type: str
    ) -> tuple[bytes | None, JobSpan | None]:
        """A job is accepted: which trace it keeps, and its span, if it is to have any."""
        if not self._sampler.wants(parent, random.random()):
            return None if parent is None else unsampled(parent), None
        return self.begins(parent, tenant, job_type)

    def begins(
        self, parent: bytes | None, tenant: Tenant, job_type: str
    ) -> tuple[bytes | None, JobSpan | None]:
        """The same, for one that is wanted, if there is room for it."""
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

    def sent_alone(self, count: int) -> list[int]:
        """Which of so many jobs without a trace begin one: places, drawn without a look at each."""
        return self._sampler.places(count, random.random)

    def keeps(self, trace: bytes, tenant: TenantId) -> bytes:
        """What a job keeps of its trace that comes in by another way than alone: one of many of a
        flow, or what a run starts. It may be sampled if the trace is, and there is room for it."""
        now_us, chance = time.monotonic_ns() // 1000, random.random()
        is_taken = is_sampled(trace) and self._sampler.takes(trace, tenant, chance, now_us)
        return trace if is_taken else unsampled(trace)

    def granted(self, jobs: Iterable[QueuedJob], pool: str, worker: str, now_ms: int) -> None:
        """Leases of these are on their way; each belongs to a trace."""
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
        above = (
            None if parent is None else SpanContext(trace_id_of(parent), span_id_of(parent), True)
        )
        trace_id = random.getrandbits(128) or 1 if above is None else above.trace_id
        context = SpanContext(trace_id, random.getrandbits(64) or 1, False, _SAMPLED)
        began_ns = time.time_ns() if start_ns is None else start_ns
        said = {key: _short(value) for key, value in facts.items()}
        made = _Made(name, kind, context, above, self._resource, began_ns)
        return JobSpan(made, SYSTEM | said, self._add)


def _short(value: Value) -> Value:
    return value[:TEXT_MAX] if isinstance(value, str) else value
