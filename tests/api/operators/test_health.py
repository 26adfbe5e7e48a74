"""Health and metrics for machines, also while the store is away."""

from __future__ import annotations

import asyncio
import secrets
from datetime import UTC, datetime, timedelta

import httpx2
from tests.api.cable import cable_to
from tests.api.house import open_house, problem
from tests.api.worker import HandWorker
from tests.postgres import Server, at_database, drop_database, in_thread, make_database

from fairway.api.operators.health import METRICS_SECONDS, NAMES_MAX
from fairway.services.readiness import KEPT_US


async def test_health_needs_no_key(nobody: httpx2.AsyncClient) -> None:
    assert (await nobody.get("/livez")).json() == {"status": "ok"}
    ready = await nobody.get("/readyz")
    assert ready.status_code == 200
    checks = {"database": True, "jobs_writable": True, "shards_open": True}
    assert ready.json() == {"status": "ok", "checks": checks}
    for path in ("/livez", "/readyz", "/metrics"):
        head = await nobody.head(path)
        assert (head.status_code, head.content) == (200, b"")


async def test_metrics_name_what_happens(
    nobody: httpx2.AsyncClient, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await worker.hello()
    await tenant.post("/v1/jobs", json={"type": worker.type})
    await worker.run()
    reply = await nobody.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain")
    names = {line.split(" ")[2] for line in reply.text.splitlines() if line.startswith("# TYPE")}
    assert names >= {
        "fairway_jobs_accepted_total",
        "fairway_jobs_refused_total",
        "fairway_leases_granted_total",
        "fairway_outcomes_recorded_total",
        "fairway_outcomes_refused_total",
        "fairway_leases_lost_total",
        "fairway_jobs_promoted_total",
        "fairway_group_commit_jobs",
        "fairway_group_commit_seconds",
        "fairway_jobs_queued",
        "fairway_jobs_running",
        "fairway_worker_slots",
        "fairway_workers",
        "fairway_oldest_runnable_age_seconds",
        "fairway_pickup_seconds",
        "fairway_shards_owned",
    }
    assert worker.type not in reply.text  # what users name is never a label


async def test_metrics_are_told_by_name(
    nobody: httpx2.AsyncClient,
    tenant: httpx2.AsyncClient,
    operator: httpx2.AsyncClient,
    worker: HandWorker,
) -> None:
    await made_late(tenant, worker)
    wanted = ["fairway_jobs_accepted_total", "fairway_pickup_seconds_count"]
    wanted += ["fairway_lateness_seconds_max", "fairway_no_such_figure"]
    asked = {"name[]": wanted}
    for caller, more in ((nobody, set()), (operator, {"fairway_lateness_seconds_max"})):
        told = (await caller.get("/metrics", params=asked)).text
        samples = [line for line in told.splitlines() if not line.startswith("#")]
        assert {line.partition("{")[0].split(" ")[0] for line in samples} == set(wanted[:2]) | more
    whole = (await nobody.get("/metrics")).text
    assert all(line in whole for line in samples if wanted[0] in line)
    many = {"name[]": [f"name_{n}" for n in range(NAMES_MAX + 1)]}
    problem(await nobody.get("/metrics", params=many), 422, "INVALID_REQUEST")


async def made_late(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    """A run past its due time, which is told by type."""
    await worker.hello()
    past = (datetime.now(UTC) - timedelta(seconds=5)).isoformat()
    job = {"type": worker.type, "execute_at": past}
    assert (await tenant.post("/v1/jobs", json=job)).status_code == 202
    await worker.run()
    await asyncio.sleep(METRICS_SECONDS)  # the text may be as old as that


async def test_metrics_name_job_types_to_operators_only(
    nobody: httpx2.AsyncClient,
    tenant: httpx2.AsyncClient,
    operator: httpx2.AsyncClient,
    worker: HandWorker,
) -> None:
    await made_late(tenant, worker)
    for caller in (nobody, tenant, worker.client):
        told = await caller.get("/metrics")
        assert told.status_code == 200
        assert "type=" not in told.text
        assert "fairway_jobs_accepted_total" in told.text
    told = await operator.get("/metrics")
    assert f'fairway_lateness_seconds_count{{type="{worker.type}"}} 1' in told.text
    assert "fairway_jobs_accepted_total" in told.text
    wrong = {"authorization": "Bearer fw_operator_00c0ffee_nobody"}
    problem(await nobody.get("/metrics", headers=wrong), 401, "UNAUTHENTICATED")


async def test_a_setting_lets_metrics_name_job_types_to_everybody(database_url: str) -> None:
    with open_house(database_url, metrics_name_types=True) as house:
        (_, key), worker_key = house.new_tenant(), house.new_key({"scope": "worker"})
        async with house.caller(key) as tenant, house.caller(worker_key) as line:
            worker = HandWorker(line)
            await made_late(tenant, worker)
            async with house.caller() as nobody:
                assert f'type="{worker.type}"' in (await nobody.get("/metrics")).text


async def test_a_server_without_its_store_lives_and_says_so(postgres_server: Server) -> None:
    database = f"gone_{secrets.token_hex(4)}"
    in_thread(make_database(postgres_server.dsn, database, template=postgres_server.template))
    with (
        cable_to(at_database(postgres_server.dsn, database)) as cable,
        open_house(cable.dsn) as house,
    ):
        (_, key), worker_key = house.new_tenant(), house.new_key({"scope": "worker"})
        async with house.caller(worker_key) as line:  # keys that were used once stay known
            await line.post("/v1/workers/w/exchange", json={"session": "0" * 32})
        async with house.caller(key) as tenant, house.caller(house.operator_key) as operator:
            location = (await tenant.post("/v1/jobs", json={"type": "a"})).headers["location"]
            assert (await operator.get("/readyz")).status_code == 200
            await operator.delete("/v1/keys/00c0ffee")  # the operator's key is known from now on
            cable.cut()
            await asyncio.sleep(KEPT_US / 1e6)
            assert (await tenant.get("/livez")).status_code == 200
            ready = await tenant.get("/readyz")
            assert ready.status_code == 503
            assert set(ready.json()["checks"].values()) == {False}
            for method, path, body in (
                ("POST", "/v1/jobs", {"type": "a"}),
                ("POST", "/v1/jobs/batch", {"jobs": [{"type": "new.type"}]}),
                ("GET", location, None),
                ("GET", "/v1/jobs", None),
                ("GET", f"{location}/events", None),
                ("DELETE", location, None),
            ):
                problem(await tenant.request(method, path, json=body), 503, "UNAVAILABLE")
            for method, path, body in (
                ("POST", "/v1/tenants", {"name": "late"}),
                ("POST", "/v1/keys", {"scope": "worker"}),
                ("DELETE", "/v1/keys/00c0ffee", None),
            ):
                problem(await operator.request(method, path, json=body), 503, "UNAVAILABLE")
            hello = {"types": [{"name": "new.kind"}], "slots": {}}
            async with house.caller(worker_key) as line:
                call = {"session": "0" * 32, "hello": hello}
                reply = await line.post("/v1/workers/w/exchange", json=call)
                problem(reply, 503, "UNAVAILABLE")
            cable.mend()
            assert (await tenant.post("/v1/jobs", json={"type": "a"})).status_code == 202
    in_thread(drop_database(postgres_server.dsn, database))
