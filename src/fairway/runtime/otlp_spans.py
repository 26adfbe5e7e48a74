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
from typing import Self

from fairway.core.errors import FairwayError
from fairway.core.ids import TenantId
from fairway.core.insight.span_bytes import (
    CLIENT,
    CONSUMER,
    INTERNAL,
    PRODUCER,
    SpanRecord,
    Value,
)
from fairway.core.insight.trace_context import TRACE_BYTES, is_sampled, unsampled
from fairway.core.insight.trace_sampling import Sampling, TraceSampler
from fairway.core.job import QueuedJob, due_ms_of
from fairway.core.tenant import Tenant

TEXT_MAX = 128  # characters of what others name: a kind of error, a worker

SYSTEM: dict[str, Value] = {"messaging.system": "fairway"}
_SAMPLED = b"\x01"
_NEW_TRACE_BYTES = TRACE_BYTES - 1


class JobSpan:
    """One that is under way. `trace` is what comes below it belongs to.

    Made without a tracer: what that looks up for every span (samplers, limits, locks) is known.
    """

    __slots__ = ("_add", "_facts", "_is_error", "_kind", "_name", "_parent", "_start_ns", "trace")

    def __init__(
        self,
        name: str,
        kind: int,
        parent: bytes | None,
        facts: dict[str, Value],
        start_ns: int,
        add: Callable[[SpanRecord], None],
    ) -> None:
        self._name = name
        self._kind = kind
        self._parent = parent
        self._facts = facts
        self._start_ns = start_ns
        self._is_error = False
        self._add = add
        known = b"" if parent is None else parent[:16]
        self.trace = known + random.randbytes(_NEW_TRACE_BYTES - len(known)) + _SAMPLED

    def say(self, facts: Mapping[str, Value]) -> None:
        for name, value in facts.items():
            self._facts[name] = _short(value)

    def fail(self, kind: str) -> None:
        """`kind` is of a few: a failure class, a problem's code, a status."""
        self._facts["error.type"] = _short(kind)
        self._is_error = True

    def end(self) -> None:
        self._add(
            SpanRecord(
                self._name,
                self._kind,
                self.trace,
                self._parent,
                self._start_ns,
                time.time_ns(),
                self._facts,
                self._is_error,
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
    def __init__(self, add: Callable[[SpanRecord], None], sampling: Sampling) -> None:
        """`add` is given each span as it ends, on any thread, and takes no time."""
        self._add = add
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
            PRODUCER,
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
                INTERNAL,
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
        return self._begin(f"process {job_type}", parent, CONSUMER, {**named, **facts})

    def delivers(self, parent: bytes, event: str, facts: Mapping[str, Value]) -> JobSpan:
        """A webhook's receiver is about to be called."""
        named = {"fairway.event": event, "http.request.method": "POST"}
        return self._begin(f"deliver {event}", parent, CLIENT, {**named, **facts})

    def _begin(
        self,
        name: str,
        parent: bytes | None,
        kind: int,
        facts: Mapping[str, Value],
        start_ns: int | None = None,
    ) -> JobSpan:
        began_ns = time.time_ns() if start_ns is None else start_ns
        said = {key: _short(value) for key, value in facts.items()}
        return JobSpan(name, kind, parent, SYSTEM | said, began_ns, self._add)


def _short(value: Value) -> Value:
    return value[:TEXT_MAX] if isinstance(value, str) else value
