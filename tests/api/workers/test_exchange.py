"""The exchange as a worker in another language sees it: JSON over HTTP, message by message."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.jobs.test_jobs import submit
from tests.api.worker import HandWorker

UNKNOWN = "01980a5e-7c1b-7000-8000-04a2b1c3d4e5"


async def state(tenant: httpx2.AsyncClient, location: str) -> str:
    return str((await tenant.get(location)).json()["state"])


# -- hello, lease, report ----------------------------------------------------------------------


async def test_who_did_not_say_hello_is_asked_to(worker: HandWorker) -> None:
    assert (await worker.say())["resync"] is True
    assert "resync" not in await worker.hello()
    assert "resync" not in await worker.say()


async def test_a_lease_carries_all_a_run_needs(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    beat = (await worker.hello())["beat_ms"]
    assert 1000 <= beat <= 10_000
    location = await submit(tenant, worker.type, payload={"n": 1}, timeout_seconds=2.5)
    lease = await worker.lease()
    assert f"/v1/jobs/{lease['job']}" == location
    assert lease["type"] == worker.type
    assert lease["pool"] == "short"
    assert lease["payload"] == {"n": 1}
    assert lease["timeout_ms"] == 2500
    assert (lease["attempt"], lease["delivery"]) == (1, 1)
    assert lease["epoch"] > 0
    assert len(lease["token"]) == 32


@pytest.mark.parametrize("pool", ["short", "medium", "long"])
async def test_each_pool_is_served(
    tenant: httpx2.AsyncClient, worker: HandWorker, pool: str
) -> None:
    await worker.hello(pool=pool)
    location = await submit(tenant, worker.type, pool=pool)
    lease = await worker.run(result=1)
    assert lease["pool"] == pool
    assert await state(tenant, location) == "succeeded"


async def test_slots_bound_what_is_leased(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    for _ in range(5):
        await submit(tenant, worker.type)
    await worker.hello(slots=2)
    for _ in range(20):
        if len(worker.inbox) == 2:
            break
        await worker.say(wait_ms=200)
    assert len(worker.inbox) == 2
    assert "leases" not in await worker.say(wait_ms=100)
    first, _ = worker.inbox
    await worker.tell(worker.report(first))
    await worker.say(wait_ms=200)
    assert len(worker.inbox) == 3


async def test_a_worker_gets_only_the_types_it_runs(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await worker.hello(slots=5)
    await submit(tenant, "somebody.elses.type")
    mine = await submit(tenant, worker.type)
    assert (await worker.lease())["job"] in mine
    assert worker.inbox == []


async def test_a_newer_call_answers_the_held_one(worker: HandWorker) -> None:
    await worker.hello()
    held = asyncio.create_task(worker.say(wait_ms=20_000))
    await asyncio.sleep(0.1)
    async with asyncio.timeout(30):
        await worker.say()
        assert not held.done(), "a call that does not wait leaves the one that listens alone"
        await worker.say(wait_ms=10)
        await held


async def test_a_report_is_recorded_once_and_acknowledged_each_time(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await worker.hello()
    location = await submit(tenant, worker.type)
    report = worker.report(await worker.lease(), result={"first": True})
    assert (await worker.tell(report))["recorded"] == [report["n"]]
    version = (await tenant.get(location)).headers["etag"]
    assert (await worker.tell(report))["recorded"] == [report["n"]]
    changed = report | {"result": {"first": False}}
    assert (await worker.tell(changed))["recorded"] == [report["n"]]
    reply = await tenant.get(location)
    assert reply.headers["etag"] == version
    assert reply.json()["result"] == {"first": True}


@pytest.mark.parametrize(
    "forgery",
    [
        {"token": "0" * 32},
        {"epoch": 1 << 62},
        {"job": UNKNOWN},
        {"job": "nonsense"},
        {"tenant": "nobody"},
    ],
    ids=str,
)
async def test_a_forged_report_is_refused(
    tenant: httpx2.AsyncClient, worker: HandWorker, forgery: dict[str, Any]
) -> None:
    await worker.hello()
    location = await submit(tenant, worker.type)
    lease = await worker.lease()
    forged = worker.report(lease) | forgery
    heard = await worker.tell(forged)
    if forgery == {"tenant": "nobody"}:  # the lease alone says whose job it is
        assert heard["recorded"] == [forged["n"]]
    else:
        assert heard["refused"] == [forged["n"]]
        assert await state(tenant, location) in ("queued", "running")


async def test_another_session_cannot_report(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await worker.hello()
    location = await submit(tenant, worker.type)
    lease = await worker.lease()
    async with house.caller(house.new_key({"scope": "worker"})) as line:
        thief = HandWorker(line)
        await thief.hello()
        stolen = thief.report(lease, result="stolen")
        assert (await thief.tell(stolen))["refused"] == [stolen["n"]]
        await thief.leave()
    await worker.tell(worker.report(lease, result="mine"))
    assert (await tenant.get(location)).json()["result"] == "mine"


# -- every way a run can end -------------------------------------------------------------------


async def test_a_failure_is_tried_again_later(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await worker.hello()
    location = await submit(tenant, worker.type)
    error = {"type": "ValueError", "message": "no", "stack": "…"}
    later_ms = 700  # it is looked at before
    await worker.run(kind="failed", failure="app_error", error=error, delay_ms=later_ms)
    job = (await tenant.get(location)).json()
    told = {"failure": "app_error", "reason": "retrying", **error}
    assert (job["attempts"], job["deliveries"], job["error"]) == (1, 1, told)
    assert job["state"] in ("scheduled", "queued", "running")
    again = await worker.lease()
    assert (again["attempt"], again["delivery"]) == (2, 2)
    await worker.tell(worker.report(again))
    assert await state(tenant, location) == "succeeded"


async def test_the_last_attempt_is_the_workers_to_say(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    hello = {"types": [{"name": worker.type, "attempts_max": 1}], "slots": {"short": 1}}
    await worker.say(hello=hello, running=[])
    location = await submit(tenant, worker.type)
    await worker.run(kind="failed", failure="app_error")
    assert await state(tenant, location) == "dead"


async def test_a_permanent_failure_is_final(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    await worker.hello()
    location = await submit(tenant, worker.type)
    await worker.run(kind="failed", failure="permanent", error={"message": "never"})
    assert await state(tenant, location) == "dead"


async def test_a_crash_costs_a_delivery_and_no_attempt(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await worker.hello()
    await submit(tenant, worker.type)
    await worker.run(kind="failed", failure="worker_crash")
    again = await worker.lease()
    assert (again["attempt"], again["delivery"]) == (1, 2)


@pytest.mark.parametrize(("kind", "more"), [("snoozed", {"delay_ms": 20}), ("returned", {})])
async def test_snooze_and_hand_back_cost_no_attempt(
    tenant: httpx2.AsyncClient, worker: HandWorker, kind: str, more: dict[str, int]
) -> None:
    await worker.hello()
    await submit(tenant, worker.type)
    first = await worker.run(kind=kind, **more)
    again = await worker.lease()
    assert again["job"] == first["job"]
    assert again["epoch"] > first["epoch"]
    assert (again["attempt"], again["delivery"]) == (1, 2)


# -- resync, cancel, drain, goodbye ------------------------------------------------------------


async def test_a_lost_reply_is_said_again_on_resync(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await worker.hello()
    await submit(tenant, worker.type)
    lost = await worker.lease()  # say that this reply never arrived
    assert "leases" not in await worker.say(wait_ms=100)
    again = (await worker.hello(running=[]))["leases"]
    assert again == [lost]
    assert "leases" not in await worker.hello(running=[worker.holding(lost)])


async def test_a_resync_with_an_unheard_report_records_it_once(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await worker.hello()
    location = await submit(tenant, worker.type)
    lease = await worker.lease()
    report = worker.report(lease, result=1)
    await worker.say(reports=[report])  # the reply is lost
    await worker.hello(running=[worker.holding(lease)], reports=[report])
    assert (await worker.tell(report))["recorded"]
    assert await state(tenant, location) == "succeeded"


async def test_a_lease_that_is_not_in_force_is_revoked(worker: HandWorker) -> None:
    nothing = {"job": UNKNOWN, "tenant": "nobody", "epoch": 1, "token": "0" * 32}
    heard = await worker.hello(running=[nothing])
    assert (heard["revoked"], heard["revoked_epochs"]) == ([UNKNOWN], [1])


async def test_progress_is_shown_to_the_tenant(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await worker.hello()
    location = await submit(tenant, worker.type)
    lease = await worker.lease()
    for progress in ({"percent": 10}, "half", [1, None]):
        await worker.say(running=[worker.holding(lease, progress=progress)])
        assert (await tenant.get(location)).json()["progress"] == progress


async def test_a_draining_worker_gets_nothing_new(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await worker.hello()
    await submit(tenant, worker.type)
    lease = await worker.lease()
    location = await submit(tenant, worker.type)
    await worker.tell(worker.report(lease), draining=True)
    assert "leases" not in await worker.say(draining=True, wait_ms=200)
    assert worker.inbox == []
    assert await state(tenant, location) == "queued"


async def test_goodbye_frees_what_was_held(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await worker.hello()
    await submit(tenant, worker.type)
    held = await worker.lease()
    await worker.say(goodbye=True)
    async with house.caller(house.new_key({"scope": "worker"})) as line:
        heir = HandWorker(line)
        heir.type = worker.type
        await heir.hello()
        again = await heir.lease()
        assert (again["job"], again["delivery"]) == (held["job"], 2)
        assert again["attempt"] == 1
        late = worker.report(held, result="too late")
        assert (await worker.say())["resync"] is True
        await worker.hello(running=[worker.holding(held)], reports=[late])
        assert (await worker.tell(late))["refused"] == [late["n"]]
        await heir.tell(heir.report(again, result="heir"))
        await heir.leave()
    assert (await tenant.get(f"/v1/jobs/{held['job']}")).json()["result"] == "heir"


# -- what is refused ---------------------------------------------------------------------------

REPORT = {"n": 1, "job": UNKNOWN, "tenant": "t", "epoch": 1, "token": "0" * 32, "kind": "succeeded",
          "ran_us": 1}  # fmt: skip
HOLDING = {"job": UNKNOWN, "tenant": "t", "epoch": 1, "token": "0" * 32}
HELLO: dict[str, Any] = {"types": [], "slots": {}}


@pytest.mark.parametrize(
    ("message", "pointer"),
    [
        ({"session": "short"}, "/session"),
        ({"session": "0" * 32 + "\n"}, "/session"),
        ({"session": "G" * 32}, "/session"),
        ({"session": None}, "/session"),
        ({"hello": {}}, "/hello/types"),
        ({"hello": HELLO | {"slots": {"short": -1}}}, "/hello/slots"),
        ({"hello": HELLO | {"slots": {"short": 10**9}}}, "/hello/slots"),
        ({"hello": HELLO | {"types": [{"name": "a\x00"}]}}, "/hello/types/0/name"),
        ({"hello": HELLO | {"types": [{"name": "a", "attempts_max": 0}]}},
         "/hello/types/0/attempts_max"),
        ({"reports": [REPORT | {"epoch": 1 << 70}]}, "/reports/0/epoch"),
        ({"reports": [REPORT | {"epoch": 1.5}]}, "/reports/0/epoch"),
        ({"reports": [REPORT | {"epoch": 0}]}, "/reports/0/epoch"),
        ({"reports": [REPORT | {"ran_us": -1}]}, "/reports/0/ran_us"),
        ({"reports": [REPORT | {"ran_us": 1 << 63}]}, "/reports/0/ran_us"),
        ({"reports": [REPORT | {"delay_ms": 1 << 63}]}, "/reports/0/delay_ms"),
        ({"reports": [REPORT | {"kind": "vanished"}]}, "/reports"),
        ({"reports": [REPORT | {"kind": "failed"}]}, "/reports/failure"),
        ({"reports": [REPORT | {"kind": "failed", "failure": "bad luck"}]}, "/reports"),
        ({"hello": HELLO, "running": [HOLDING | {"token": "guess"}]}, "/running/0/token"),
        ({"hello": HELLO, "running": [HOLDING | {"epoch": -1}]}, "/running/0/epoch"),
        ({"hello": HELLO, "running": [HOLDING | {"job": "x"}]}, "/job"),
    ],
    ids=str,
)  # fmt: skip
async def test_a_bad_message_is_named(
    worker: HandWorker, message: dict[str, Any], pointer: str
) -> None:
    problem(await worker.post(**message), 422, "INVALID_REQUEST", pointer)


async def test_an_unknown_pool_is_named(worker: HandWorker) -> None:
    reply = await worker.post(hello={"types": [], "slots": {"huge": 1}})
    problem(reply, 422, "UNKNOWN_POOL", "/hello/slots")


async def test_bytes_that_are_no_text_are_refused_whole(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await worker.hello()
    location = await submit(tenant, worker.type)
    report = worker.report(await worker.lease(), result="@")
    body = httpx2.Request("POST", "http://x", json={"session": worker.session, "reports": [report]})
    async with house.caller(house.new_key({"scope": "worker"})) as line:
        for bad in (b"\xff", b"\xed\xa0\x80", b"\xc0\x80"):
            reply = await line.post(
                "/v1/workers/w/exchange", content=body.read().replace(b"@", bad)
            )
            problem(reply, 400, "INVALID_JSON")
    assert await state(tenant, location) in ("queued", "running")


@pytest.mark.parametrize("name", ["a%20b", "-x", "x" * 129, "%00", "a%0a", "%C3%A9"])
async def test_a_worker_has_a_plain_name(house: House, name: str) -> None:
    async with house.caller(house.new_key({"scope": "worker"})) as line:
        reply = await line.post(f"/v1/workers/{name}/exchange", json={"session": "0" * 32})
        problem(reply, 422, "INVALID_REQUEST", "name")


async def test_a_bad_call_leaves_the_session_as_it_was(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await worker.hello()
    location = await submit(tenant, worker.type)
    lease = await worker.lease()
    good = worker.report(lease)
    reply = await worker.post(reports=[good, good | {"kind": "failed", "n": 99}])
    problem(reply, 422, "INVALID_REQUEST")
    assert await state(tenant, location) in ("queued", "running")
    await worker.tell(good)
    assert await state(tenant, location) == "succeeded"


async def test_two_workers_never_hold_one_job(house: House, tenant: httpx2.AsyncClient) -> None:
    key = house.new_key({"scope": "worker"})
    type_ = f"race.{secrets.token_hex(4)}"
    async with house.caller(key) as line:
        workers = [HandWorker(line) for _ in range(5)]
        for worker in workers:
            worker.type = type_
            await worker.hello(slots=3)
        await asyncio.gather(*(submit(tenant, type_) for _ in range(12)))
        await asyncio.gather(*(worker.say(wait_ms=300) for worker in workers))
        held = [lease["job"] for worker in workers for lease in worker.inbox]
        assert len(held) == len(set(held)) == 12
        for worker in workers:
            await worker.leave()


async def test_a_lease_that_is_out_keeps_no_long_payload_and_comes_again_whole(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    """A worker may have very many slots: what it holds must not be held here, too."""
    payload = {"text": "x" * 20_000}
    await worker.hello(slots=2)
    for body in (payload, {"n": 1}):
        await tenant.post("/v1/jobs", json={"type": worker.type, "payload": body})
    leases = [await worker.lease() for _ in range(2)]
    assert [lease["payload"] for lease in leases] == [payload, {"n": 1}]
    held = house.platform.dispatcher.leases
    assert [held[lease["job"]].job.payload for lease in leases] == [b"", b'{"n":1}']
    await worker.hello(slots=2)  # it has heard of nothing
    again = {lease["job"]: lease for lease in [await worker.lease() for _ in range(2)]}
    assert again == {lease["job"]: lease for lease in leases}
    await worker.tell(worker.report(leases[0], "returned"))
    assert (await worker.lease())["payload"] == payload
