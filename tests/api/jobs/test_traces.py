"""The trace of a job over HTTP: kept, handed to its worker, and never a reason to refuse it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from tests.api.house import House
from tests.api.worker import HandWorker

from fairway.core.insight.trace_context import unsampled

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
ONE = f"00-{TRACE}-00f067aa0ba902b7-01"
TWO = f"00-{TRACE}-00f067aa0ba902b8-00"


async def posted(
    tenant: httpx2.AsyncClient, job: dict[str, Any], traceparent: str | None = None, **more: str
) -> str:
    headers = more if traceparent is None else {"traceparent": traceparent, **more}
    reply = await tenant.post("/v1/jobs", json=job, headers=headers)
    assert reply.status_code == 202, reply.text
    return str(reply.json()["id"])


async def traceparent_of(tenant: httpx2.AsyncClient, job: str) -> str | None:
    found: str | None = (await tenant.get(f"/v1/jobs/{job}")).json()["traceparent"]
    return found


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"delay_seconds": 3600},
        {"tags": ["nightly"]},
        {"events": True},
        {"limits": [{"key": "one", "at_most": 1}]},
        {"unique": {"key": "k"}},
    ],
)
async def test_a_trace_is_kept_however_the_job_is_written(
    tenant: httpx2.AsyncClient, more: dict[str, Any]
) -> None:
    job = {"type": "email.send", **more}
    assert await traceparent_of(tenant, await posted(tenant, job, ONE)) == ONE
    if "unique" not in more:
        keyed = await posted(tenant, job, TWO, **{"Idempotency-Key": "k"})
        assert await traceparent_of(tenant, keyed) == TWO
        # another trace is no other body
        assert await posted(tenant, job, ONE, **{"Idempotency-Key": "k"}) == keyed
        assert await traceparent_of(tenant, await posted(tenant, job)) is None


@pytest.mark.parametrize("text", ["", "nonsense", ONE + "0", ONE.upper(), "\xff" * 55])
async def test_one_that_is_not_well_formed_is_ignored(
    tenant: httpx2.AsyncClient, text: str
) -> None:
    headers = {b"traceparent": text.encode("latin-1")}
    reply = await tenant.post("/v1/jobs", json={"type": "email.send"}, headers=headers)
    assert reply.status_code == 202, reply.text
    assert await traceparent_of(tenant, reply.json()["id"]) is None


@pytest.mark.parametrize("jobs", [3, 40])  # an INSERT, and a COPY
@pytest.mark.parametrize("keyed", [False, True])
async def test_each_job_of_a_batch_may_have_its_own(
    tenant: httpx2.AsyncClient, jobs: int, keyed: bool
) -> None:
    body: dict[str, Any] = {"jobs": [{"type": "email.send"}] * jobs, "traceparents": [TWO, "odd"]}
    if keyed:
        body["idempotency_keys"] = [f"{jobs}-{place}" for place in range(jobs)]
    reply = await tenant.post("/v1/jobs/batch", json=body, headers={"traceparent": ONE})
    ids = [item["id"] for item in reply.json()["items"]]
    assert [await traceparent_of(tenant, job) for job in ids[:3]] == [TWO, ONE, ONE]
    assert await traceparent_of(tenant, ids[-1]) == ONE
    alone = await tenant.post("/v1/jobs/batch", json={**body, "idempotency_keys": None})
    ids = [item["id"] for item in alone.json()["items"]]
    assert [await traceparent_of(tenant, job) for job in ids[:3]] == [TWO, None, None]


async def test_a_worker_hears_it_at_every_attempt_and_after_a_replay(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await worker.hello()
    job = await posted(tenant, {"type": worker.type}, ONE)
    failed = {"failure": "app_error", "error": {"type": "E", "message": "m"}, "delay_ms": 1}
    first = await worker.run(kind="failed", **failed)
    second = await worker.run(kind="failed", failure="permanent", error=failed["error"])
    assert (first["traceparent"], second["traceparent"]) == (ONE, ONE)
    replayed = await tenant.post(f"/v1/dead-letters/{job}/replay")
    assert replayed.status_code in (200, 202), replayed.text
    again = await worker.run()
    assert (again["job"], again["traceparent"]) == (job, ONE)
    await posted(tenant, {"type": worker.type})
    assert "traceparent" not in await worker.run()


async def test_what_a_run_starts_belongs_to_the_trace_of_the_run(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await worker.hello()
    job = await posted(tenant, {"type": worker.type}, ONE)
    lease = await worker.lease()
    at_ms = int(job.replace("-", "")[:12], 16)
    started = {"at_ms": at_ms, "jobs": [{"type": worker.type}], "traceparent": TWO}
    await worker.tell(worker.report(lease, follow_ups=started))
    assert (await worker.run())["traceparent"] == TWO


async def test_jobs_of_a_flow_belong_to_the_trace_of_their_call(
    tenant: httpx2.AsyncClient,
) -> None:
    flow = {"kind": "group", "jobs": [{"type": "a"}, {"type": "b"}], "callback": {"type": "c"}}
    reply = await tenant.post("/v1/flows", json=flow, headers={"traceparent": ONE})
    assert reply.status_code == 202, reply.text
    made = reply.json()
    for job in (*made["jobs"], made["callback"]):
        assert await traceparent_of(tenant, job) == ONE


class NoRoom:
    """Of spans: somebody set the flag on everything."""

    def keeps(self, trace: bytes, tenant: int) -> bytes:
        return unsampled(trace)


async def test_many_at_once_are_sampled_as_there_is_room(
    house: House,
    tenant: httpx2.AsyncClient,
    worker: HandWorker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Jobs of a flow, and what a run starts: the flag is anybody's to set."""
    platform, plain = house.platform, f"{ONE[:-2]}00"
    otlp: Any = SimpleNamespace(spans=NoRoom())
    monkeypatch.setattr(platform, "instruments", platform.instruments._replace(otlp=otlp))
    flow = {"kind": "group", "jobs": [{"type": "a"}, {"type": "b"}], "callback": {"type": "c"}}
    reply = await tenant.post("/v1/flows", json=flow, headers={"traceparent": ONE})
    made = reply.json()
    for job in (*made["jobs"], made["callback"]):
        assert await traceparent_of(tenant, job) == plain
    intake = platform.exchange._take_parent.__self__  # type: ignore[attr-defined]
    monkeypatch.setattr(intake, "_spans", NoRoom())
    await worker.hello()
    parent = await posted(tenant, {"type": worker.type})
    lease = await worker.lease()
    at_ms = int(parent.replace("-", "")[:12], 16)
    started = {"at_ms": at_ms, "jobs": [{"type": worker.type}], "traceparent": ONE}
    await worker.tell(worker.report(lease, follow_ups=started))
    assert (await worker.run())["traceparent"] == plain


async def test_replaced_processes_of_workers_are_counted(
    house: House, worker: HandWorker, nobody: httpx2.AsyncClient
) -> None:
    line = 'fairway_worker_recycled_total{reason="stuck"}'

    def now() -> float:
        sample = house.platform.metrics.registry.get_sample_value(
            "fairway_worker_recycled_total", {"reason": "stuck"}
        )
        return sample or 0.0

    before = now()
    await worker.hello(recycled={"stuck": 2})
    assert now() == before + 2
    assert (await worker.post(recycled={"odd": 1})).status_code == 422
    assert line.partition("{")[0] in (await nobody.get("/metrics")).text
