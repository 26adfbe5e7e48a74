"""One trace from POST to webhook, through a retry on another worker: real processes, real OTLP."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.acceptance.house import House
from tests.acceptance.processes import until
from tests.otlp_receiver import OtlpReceiver, Received, receiving_otlp
from tests.runtime.test_otlp import shown
from tests.services.webhooks.receiver import receiving

APP = "tests.acceptance.traced_jobs:app"
TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED, UNSAMPLED = f"00-{TRACE}-{CALLER}-01", f"00-{TRACE}-{CALLER}-00"
WANTED = Counter(
    ["send traced", *["dispatch short"] * 3, *["process traced"] * 2, "process follow"]
) + Counter({"deliver job.succeeded": 2})


def named(otlp: OtlpReceiver, name: str) -> list[Received]:
    return sorted((one for one in otlp.spans if one.name == name), key=lambda one: one.start_ns)


async def test_a_trace_from_post_to_webhook_is_complete(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiving_otlp() as otlp:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", otlp.url)
        monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "300")
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "300")
        monkeypatch.setenv("OTEL_BLRP_SCHEDULE_DELAY", "300")
        on = {"FAIRWAY_OTEL": "true", "FAIRWAY_OTEL_TRACE_RATIO": "0"}
        house.settings |= on | {
            "FAIRWAY_WEBHOOK_HTTP": "true",
            "FAIRWAY_WEBHOOK_PRIVATE_NETWORKS": "127.0.0.0/8",
        }
        house.worker_settings = on
        async with receiving() as receiver:
            workers = await house.open(workers=2, app=APP, pools=("short=2",))
            hook = {"url": receiver.url, "kinds": ["job.succeeded"]}
            reply = await house.call("POST", "/v1/webhooks", json=hook)
            assert reply.status_code == 201, reply.text
            pids = [worker.pid for worker in workers]
            job = await posted(house, "traced", {"workers": pids}, SAMPLED)
            view = await house.finished(job, within_seconds=60)
            quiet = await house.finished(await posted(house, "follow", {}, UNSAMPLED), 60)
            await until(lambda: len(receiver.received) == 3, 60, "the webhooks")
            await until(lambda: Counter(one.name for one in otlp.spans) == WANTED, 60, "all spans")
            await figures_agree(house, otlp)
            check_spans(otlp, job)
        result = named(otlp, "process traced")[1]
        assert (view["attempts"], view["traceparent"][:36]) == (2, f"00-{TRACE}-")
        assert view["result"] == {
            "traceparent": f"00-{TRACE}-{result.span}-01",
            "span": result.span,
        }
        assert quiet["traceparent"] == quiet["result"] == UNSAMPLED
        deliveries = {f"00-{TRACE}-{one.span}-01" for one in named(otlp, "deliver job.succeeded")}
        heard = {one.headers["traceparent"] for one in receiver.received}
        assert heard == deliveries | {UNSAMPLED}
        said = {line for line, _ in otlp.lines}
        assert {"server ready", "worker ready", "draining"} <= said


async def posted(house: House, kind: str, payload: dict[str, Any], traceparent: str) -> str:
    body = {"type": kind, "payload": payload}
    reply = await house.call("POST", "/v1/jobs", json=body, headers={"traceparent": traceparent})
    assert reply.status_code == 202, reply.text
    return str(reply.json()["id"])


def check_spans(otlp: OtlpReceiver, job: str) -> None:
    assert {one.trace for one in otlp.spans} == {TRACE}
    (send,) = named(otlp, "send traced")
    assert send.parent == CALLER
    assert send.service == "fairway-server"
    assert send.facts["messaging.message.id"] == job
    failed, good = named(otlp, "process traced")
    (follow,) = named(otlp, "process follow")
    of_follow = [one for one in named(otlp, "dispatch short") if one.parent == good.span]
    assert len(of_follow) == 1
    assert follow.parent == good.span
    below = [one for one in otlp.spans if one.parent == send.span]
    assert Counter(one.name for one in below) == Counter(
        {"dispatch short": 2, "process traced": 2, "deliver job.succeeded": 1}
    )
    assert (failed.is_error, good.is_error) == (True, False)
    assert failed.facts["error.type"] == "app_error"
    assert failed.facts["exception.type"] == "ValueError"
    assert (failed.facts["fairway.attempt"], good.facts["fairway.attempt"]) == (1, 2)
    assert failed.facts["messaging.client.id"] != good.facts["messaging.client.id"]
    assert good.facts["fairway.outcome"] == "succeeded"
    assert {one.service for one in (failed, good)} == {"fairway-worker"}
    waits = [one for one in below if one.name == "dispatch short"]
    assert all(one.start_ns <= one.end_ns for one in waits)


async def figures_agree(house: House, otlp: OtlpReceiver) -> None:
    """Counters that stand still: what OTLP says last is what `/metrics` says."""
    headers = {"authorization": f"Bearer {house.operator_key}"}

    async def texts() -> dict[str, float]:
        return shown((await house.call("GET", "/metrics", headers=headers)).content)

    still = ("fairway_jobs_accepted_total", "fairway_outcomes_recorded_total", "fairway_leases")
    want = {name: value for name, value in (await texts()).items() if name.startswith(still)}
    assert want["fairway_jobs_accepted_total"] >= 2

    def are_same() -> bool:
        return {one: otlp.figures.get(one) for one in want} == want

    await until(are_same, 60, "the same figures by OTLP")
    assert set(otlp.figures) == set(await texts())
