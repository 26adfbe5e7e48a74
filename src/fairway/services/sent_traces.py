"""Traces of jobs that come in without a request: ticks of schedules, and a tenant's own database.

As for what is submitted, a part of them begins a trace (`core/insight/trace_sampling.py`), with a
span from when its job is made until it is on disk; one that names a trace of its own keeps that.
Without OpenTelemetry nothing is drawn. It writes nothing: whoever makes jobs is given them back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

from msgspec.structs import replace

from fairway.core.ids import TenantId, TypeId
from fairway.core.job import QueuedJob
from fairway.core.tenant import Tenant

if TYPE_CHECKING:
    from fairway.runtime.otlp_spans import JobSpans

Begin: TypeAlias = Callable[[Sequence[QueuedJob]], list[QueuedJob]]


class WhoIsWho(Protocol):
    """A directory, as far as spans name anybody."""

    @property
    def tenants(self) -> Mapping[TenantId, Tenant]: ...

    @property
    def type_names(self) -> Mapping[TypeId, str]: ...


class SentTraces:
    def __init__(self, spans: JobSpans | None, names: WhoIsWho) -> None:
        self._spans = spans
        self._names = names

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[Begin]:
        """Around the transaction in which jobs are written: their spans end with it. What it gives
        answers the same jobs, with the traces that they keep."""
        with ExitStack() as under_way:
            yield partial(self._begin, under_way)

    def _begin(self, under_way: ExitStack, jobs: Sequence[QueuedJob]) -> list[QueuedJob]:
        found, spans = list(jobs), self._spans
        if spans is None:
            return found
        within = [place for place, job in enumerate(found) if job.trace is not None]
        alone = [place for place in spans.sent_alone(len(found)) if found[place].trace is None]
        for place in within + alone:
            job = found[place]
            tenant = self._names.tenants.get(job.tenant)
            if tenant is None:
                continue
            begin = spans.sends if job.trace is not None else spans.begins
            name = self._names.type_names.get(job.type, f"#{job.type}")
            trace, span = begin(job.trace, tenant, name)
            if span is not None:
                span.say({"messaging.message.id": job.id})
                under_way.enter_context(span)
            if trace is not job.trace:
                found[place] = replace(job, trace=trace)
        return found
