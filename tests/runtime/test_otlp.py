"""What is sent by OTLP: all of it, bounded, and nobody waits for a receiver that is dead."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import pytest
import structlog
from prometheus_client import generate_latest
from tests.otlp_receiver import OtlpReceiver, receiving_otlp

from fairway.core.errors import InvalidRequest
from fairway.core.ids import TenantId
from fairway.core.insight.span_bytes import SpanRecord
from fairway.core.insight.trace_context import is_sampled, trace_of, unsampled
from fairway.core.insight.trace_sampling import Sampling
from fairway.core.redaction import HIDDEN
from fairway.core.tenant import Tenant
from fairway.runtime import instruments
from fairway.runtime.clock import SystemClock
from fairway.runtime.otlp_options import OtlpOptions
from fairway.runtime.otlp_queue import OtlpQueue
from fairway.runtime.otlp_spans import JobSpans
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import Instruments, configure_logging, logger
from fairway.sdk.client.tracing import current_traceparent
from fairway.sdk.handler.tracing import attach, detach

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
TEXT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OURS = Sampling(0.01)
PAIR = re.compile(r'(\w+)="([^"]*)"')


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def sending(monkeypatch: pytest.MonkeyPatch, url: str) -> AsyncIterator[Instruments]:
    monkeypatch.setenv(ENDPOINT, url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    made = instruments.of_server(Settings(otel=True, otel_trace_ratio=1.0), SystemClock())
    try:
        yield made
    finally:
        await instruments.close(made.otlp)


def shown(text: bytes) -> dict[str, float]:
    """The lines of `/metrics`, with labels in order."""
    found = {}
    for line in text.decode().splitlines():
        name, _, value = line.rpartition(" ")
        if line.startswith("#") or "_created" in name:
            continue
        head, _, labels = name.partition("{")
        said = {
            key: f"{float(text)}" if key == "le" else text for key, text in PAIR.findall(labels)
        }
        pairs = ",".join(f'{key}="{text}"' for key, text in sorted(said.items()))
        found[head + (f"{{{pairs}}}" if pairs else "")] = float(value)
    return found


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    with receiving_otlp() as made:
        yield made


async def test_figures_are_those_of_metrics(
    monkeypatch: pytest.MonkeyPatch, receiver: OtlpReceiver
) -> None:
    async with sending(monkeypatch, receiver.url) as made:
        metrics = made.metrics
        metrics.accepted.inc(3)
        metrics.queued.labels("short").set(17)
        metrics.refused.labels("OVERLOADED").inc()
        metrics.commit_seconds.labels("outcomes").observe(0.02)
        metrics.pickup.observe_many("short", [0.001, 0.2, 100.0])
        metrics.lateness.observe("email.send", 1.5)
    want = shown(generate_latest(metrics.registry) + generate_latest(metrics.by_type))
    assert want["fairway_jobs_accepted_total"] == 3
    assert receiver.figures == want


async def test_lines_are_sent_without_their_secrets(
    monkeypatch: pytest.MonkeyPatch, receiver: OtlpReceiver, request: pytest.FixtureRequest
) -> None:
    configure_logging(json_lines=True)
    request.addfinalizer(structlog.reset_defaults)
    async with sending(monkeypatch, receiver.url):
        logger("test").warning("something odd", api_key="fk_secret", count=3, odd=["a"])
    logger("test").warning("nobody sends this")
    assert receiver.lines == [("something odd", {"api_key": HIDDEN, "count": 3, "odd": "['a']"})]


async def test_a_dead_receiver_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    tenant = Tenant(TenantId(1), "acme", 10, depth_limit=100)
    async with sending(monkeypatch, f"http://127.0.0.1:{closed_port()}") as made:
        assert made.spans is not None
        for _ in range(50):
            _, span = made.spans.sends(None, tenant, "email.send")
            if span is not None:
                span.end()
        began = time.monotonic()
        await asyncio.sleep(0)  # the loop turns
        assert made.otlp is not None
        await made.otlp.look(0)
    assert time.monotonic() - began < 60
    (family,) = made.metrics.otlp_dropped.collect()
    dropped = {one.labels["signal"]: one.value for one in family.samples if "_total" in one.name}
    assert dropped["traces"] > 0


def test_what_there_is_no_room_for_is_dropped_and_counted() -> None:
    """The receiver takes its time: whoever adds never waits."""
    let_go, sent, dropped = threading.Event(), list[int](), list[int]()

    def send(batch: Sequence[int]) -> bool:
        let_go.wait(30)
        sent.extend(batch)
        return True

    queue = OtlpQueue("traces", send, dropped.append, waiting_max=10, rest_seconds=0.001)
    for number in range(100):
        queue.add(number)
    let_go.set()
    queue.close(30)
    assert sum(dropped) + len(sent) == 100
    assert 80 <= sum(dropped) <= 90  # ten wait, and up to ten were under way
    assert sent == sorted(sent)


def test_a_receiver_that_breaks_costs_what_was_sent() -> None:
    dropped = list[int]()

    def send(batch: Sequence[int]) -> bool:
        raise RuntimeError("broken")

    queue = OtlpQueue("logs", send, dropped.append, rest_seconds=0.001)
    queue.add(1)
    queue.close(30)
    queue.add(2)
    assert sum(dropped) == 2


def test_the_flag_on_everything_takes_no_more_than_a_share() -> None:
    """However many jobs come at once by a flow, or from a run."""
    spans, sampled = JobSpans(list[SpanRecord]().append, OURS), trace_of(TEXT)
    assert sampled is not None
    kept = [spans.keeps(sampled, TenantId(1)) for _ in range(1000)]
    assert 0 < sum(map(is_sampled, kept)) < 500
    assert {one[:-1] for one in kept} == {sampled[:-1]}, "the trace is kept all the same"
    assert not is_sampled(spans.keeps(unsampled(sampled), TenantId(2)))


def test_standard_variables_are_honoured() -> None:
    def of(**environment: str) -> OtlpOptions | None:
        return OtlpOptions.of(environment, "fairway-server", "one", OURS)

    assert of(OTEL_SDK_DISABLED="true") is None
    plain = of()
    assert plain is not None
    assert plain.sampling == OURS
    assert plain.signals == {"traces", "metrics", "logs"}
    some = of(OTEL_METRICS_EXPORTER="none", OTEL_LOGS_EXPORTER="none")
    assert some is not None
    assert some.signals == {"traces"}
    ratio = of(OTEL_TRACES_SAMPLER="parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG="0.5")
    assert ratio is not None
    assert ratio.sampling == OURS._replace(ratio=0.5)
    never = of(OTEL_TRACES_SAMPLER="always_off")
    assert never is not None
    assert (never.sampling.ratio, never.sampling.follows_parents) == (0.0, False)
    slow = of(OTEL_BSP_SCHEDULE_DELAY="2500")
    assert slow is not None
    assert (slow.spans_seconds, slow.lines_seconds) == (2.5, 5.0)
    for wrong in (
        {"OTEL_TRACES_SAMPLER": "xray"},
        {"OTEL_BSP_SCHEDULE_DELAY": "0"},
        {"OTEL_METRIC_EXPORT_INTERVAL": "often"},
        {"OTEL_BSP_SCHEDULE_DELAY": "nan"},
        {"OTEL_BLRP_SCHEDULE_DELAY": "inf"},
    ):
        with pytest.raises(InvalidRequest):
            of(**wrong)
    arg = {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "2"}
    with pytest.raises(InvalidRequest, match="from 0 to 1"):
        of(**arg)


def test_off_is_off() -> None:
    assert instruments.of_server(Settings(), SystemClock()).spans is None
    assert instruments.of_worker({}, "one") is None
    assert instruments.of_worker({"FAIRWAY_OTEL": "false"}, "one") is None
    with pytest.raises(InvalidRequest, match="neither true nor false"):
        instruments.of_worker({"FAIRWAY_OTEL": "perhaps"}, "one")


def test_a_handler_is_within_the_trace_of_its_run() -> None:
    assert current_traceparent() is None
    attached = attach(TEXT)
    assert current_traceparent() == TEXT
    assert trace_of(current_traceparent() or "") is not None
    detach(attached)
    assert current_traceparent() is None
    assert attach("nonsense") is None
    detach(None)
