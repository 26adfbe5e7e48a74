"""OpenTelemetry, joined: what one program sends by OTLP over HTTP, each signal by a thread.

Spans, figures and lines wait in bounded queues (`otlp_queue.py`); the event loop never waits for a
receiver. Only imported where it is on: everything else does without OpenTelemetry.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any, TypeAlias

import structlog
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExportResult
from opentelemetry.sdk.metrics.export import MetricExportResult
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric as Family

from fairway.core.insight import span_bytes
from fairway.core.insight.span_bytes import SpanRecord, Value, encode_spans
from fairway.core.insight.trace_context import span_id_of, trace_id_of
from fairway.runtime.otlp_logs import record_of
from fairway.runtime.otlp_metrics import Times, families_of, metrics_data
from fairway.runtime.otlp_options import OtlpOptions
from fairway.runtime.otlp_queue import WAITING_MAX, OtlpQueue
from fairway.runtime.otlp_spans import JobSpans

Line: TypeAlias = MutableMapping[str, Any]
Processor: TypeAlias = Callable[[Any, str, Line], Line]
DroppedCount: TypeAlias = Callable[[str, int], None]  # signal, how many
Look: TypeAlias = tuple[Sequence[Family], Times]

SCOPE = InstrumentationScope("fairway")
_KINDS = {
    span_bytes.INTERNAL: SpanKind.INTERNAL,
    span_bytes.CLIENT: SpanKind.CLIENT,
    span_bytes.PRODUCER: SpanKind.PRODUCER,
    span_bytes.CONSUMER: SpanKind.CONSUMER,
}
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_UNSET, _ERROR = Status(StatusCode.UNSET), Status(StatusCode.ERROR)

LOOKS_MAX = 4  # figures of so many moments wait; the newest say it all again
LOOK_REST_SECONDS = 2.0


class Otlp:
    def __init__(
        self,
        options: OtlpOptions,
        registries: Sequence[CollectorRegistry],
        dropped: DroppedCount,
    ) -> None:
        # Their own lines would come for every batch that a dead receiver did not take.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self._registries = registries
        self._metrics_seconds = options.metrics_seconds
        self._resource = _resource(options)
        self._dropped = dropped
        self._start_ns = time.time_ns()
        self._queues: list[OtlpQueue[Any]] = []
        self._exporters: list[Any] = []
        self._looks: OtlpQueue[Look] | None = None
        self.spans: JobSpans | None = None
        if "traces" in options.signals:
            self.spans = JobSpans(self._span_queue(options.spans_seconds).add, options.sampling)
        if "metrics" in options.signals and registries:
            exporter = OTLPMetricExporter()
            self._looks = self._queue(
                "metrics",
                exporter,
                partial(self._send_looks, exporter),
                rest_seconds=LOOK_REST_SECONDS,
                waiting_max=LOOKS_MAX,
            )
        self._tap = self._tap_logs(options.lines_seconds) if "logs" in options.signals else None

    def _span_queue(self, rest_seconds: float) -> OtlpQueue[SpanRecord]:
        """Sampled is decided before a span is made; what is made is sent."""
        exporter = OTLPSpanExporter()
        send = partial(_send_spans, exporter, self._resource)
        return self._queue("traces", exporter, send, rest_seconds=rest_seconds)

    def _tap_logs(self, rest_seconds: float) -> Processor:
        exporter = OTLPLogExporter()

        def send(records: Sequence[ReadableLogRecord]) -> bool:
            return exporter.export(records) is LogRecordExportResult.SUCCESS

        queue: OtlpQueue[ReadableLogRecord] = self._queue(
            "logs", exporter, send, rest_seconds=rest_seconds
        )

        def sent(_: Any, __: str, line: Line) -> Line:
            queue.add(ReadableLogRecord(record_of(line), self._resource, SCOPE))
            return line

        # Before what renders a line, and after what hides its secrets.
        *before, last = structlog.get_config()["processors"]
        structlog.configure(processors=[*before, sent, last])
        return sent

    def _queue(
        self,
        signal: str,
        exporter: Any,
        send: Callable[[Sequence[Any]], bool],
        *,
        rest_seconds: float,
        waiting_max: int = WAITING_MAX,
    ) -> OtlpQueue[Any]:
        queue: OtlpQueue[Any] = OtlpQueue(
            signal,
            send,
            partial(self._dropped, signal),
            rest_seconds=rest_seconds,
            waiting_max=waiting_max,
        )
        self._queues.append(queue)
        self._exporters.append(exporter)
        return queue

    # -- figures -----------------------------------------------------------------------------

    def steps(self) -> dict[str, Callable[[int], Awaitable[float]]]:
        return {} if self._looks is None else {"otlp metrics": self.look}

    async def look(self, now_us: int) -> float:
        """The figures as they are now; what takes longer than to read them is the thread's."""
        if self._looks is not None:
            times = Times(self._start_ns, time.time_ns())
            self._looks.add((families_of(self._registries), times))
        return self._metrics_seconds

    def _send_looks(self, exporter: OTLPMetricExporter, looks: Sequence[Look]) -> bool:
        families, times = looks[-1]  # cumulative: the newest has all that the others have
        data = metrics_data(families, self._resource, times)
        return exporter.export(data) is MetricExportResult.SUCCESS

    # -- the end -----------------------------------------------------------------------------

    async def close(self) -> None:
        """Send what waits, for a moment."""
        await self.look(0)
        still = [one for one in structlog.get_config()["processors"] if one is not self._tap]
        structlog.configure(processors=still)
        await asyncio.gather(*(asyncio.to_thread(queue.close) for queue in self._queues))
        for exporter in self._exporters:
            exporter.shutdown()


def _send_spans(
    exporter: OTLPSpanExporter, resource: Resource, spans: Sequence[SpanRecord]
) -> bool:
    """As bytes that we wrote, by what the exporter sends its own with: its way, its tries and its
    settings. A version of it that has nothing of that name is given spans as it knows them."""
    deliver = getattr(getattr(exporter, "_client", None), "export", None)
    if deliver is None:
        found = exporter.export([readable(one, resource) for one in spans])
        return found is SpanExportResult.SUCCESS
    written = encode_spans(_plain(resource), resource.schema_url or "", spans)
    return bool(deliver(written).success)


def readable(one: SpanRecord, resource: Resource) -> ReadableSpan:
    return ReadableSpan(
        one.name,
        SpanContext(trace_id_of(one.trace), span_id_of(one.trace), False, _SAMPLED),
        None
        if one.parent is None
        else SpanContext(trace_id_of(one.parent), span_id_of(one.parent), True),
        resource,
        one.facts,
        kind=_KINDS[one.kind],
        status=_ERROR if one.is_error else _UNSET,
        start_time=one.start_ns,
        end_time=one.end_ns,
        instrumentation_scope=SCOPE,
    )


def _plain(resource: Resource) -> dict[str, Value]:
    return {
        name: value if isinstance(value, str | int | float) else str(value)
        for name, value in resource.attributes.items()
    }


def _resource(options: OtlpOptions) -> Resource:
    """What the environment says of a service stands; else what we know of it."""
    ours: dict[str, Any] = {
        "service.name": options.service,
        "service.instance.id": options.instance,
        "service.version": version("fairway"),
        "process.pid": os.getpid(),
    }
    return Resource.create(ours | dict(OTELResourceDetector().detect().attributes))
