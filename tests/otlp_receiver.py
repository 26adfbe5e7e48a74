"""A receiver of OTLP over HTTP on a loopback port: keeps what came, decoded."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import inf
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass
class Received:
    """One span."""

    name: str
    trace: str
    span: str
    parent: str
    service: str
    kind: int
    facts: dict[str, Any]
    is_error: bool
    start_ns: int
    end_ns: int


@dataclass
class OtlpReceiver:
    port: int = 0
    spans: list[Received] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)  # as lines of /metrics begin
    lines: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def take(self, path: str, body: bytes) -> None:
        {"/v1/traces": self._spans, "/v1/metrics": self._metrics, "/v1/logs": self._logs}[path](
            body
        )

    def _spans(self, body: bytes) -> None:
        for one in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = _facts(one.resource.attributes)["service.name"]
            for scope in one.scope_spans:
                self.spans += [_span(span, service) for span in scope.spans]

    def _metrics(self, body: bytes) -> None:
        figures: dict[str, float] = {}
        for one in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            for scope in one.scope_metrics:
                for metric in scope.metrics:
                    figures |= _figures(metric)
        self.figures = figures

    def _logs(self, body: bytes) -> None:
        for one in ExportLogsServiceRequest.FromString(body).resource_logs:
            for scope in one.scope_logs:
                self.lines += [
                    (line.body.string_value, _facts(line.attributes)) for line in scope.log_records
                ]


def _span(span: Any, service: str) -> Received:
    return Received(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        service,
        span.kind,
        _facts(span.attributes),
        span.status.code == 2,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
    )


def _facts(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


def _labels(facts: dict[str, Any]) -> str:
    inside = ",".join(f'{name}="{value}"' for name, value in sorted(facts.items()))
    return f"{{{inside}}}" if inside else ""


def _figures(metric: Any) -> dict[str, float]:
    """As `/metrics` has them, with labels in order."""
    found: dict[str, float] = {}
    for point in getattr(metric, metric.WhichOneof("data")).data_points:
        facts = _facts(point.attributes)
        if not hasattr(point, "bucket_counts"):
            number = getattr(point, point.WhichOneof("value"))
            found[f"{metric.name}{_labels(facts)}"] = float(number)
            continue
        found[f"{metric.name}_count{_labels(facts)}"] = float(point.count)
        found[f"{metric.name}_sum{_labels(facts)}"] = point.sum
        upto = 0
        for bound, count in zip([*point.explicit_bounds, inf], point.bucket_counts, strict=True):
            upto += count
            found[f"{metric.name}_bucket{_labels({**facts, 'le': bound})}"] = float(upto)
    return found


@contextmanager
def receiving_otlp() -> Iterator[OtlpReceiver]:
    receiver = OtlpReceiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            receiver.take(self.path, body)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.port = server.server_address[1]
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
    ).start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
