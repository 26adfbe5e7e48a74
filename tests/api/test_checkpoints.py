"""Checkpoints over HTTP: who holds the lease may save, who has the key may load, nobody else."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack
from typing import Any

import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.test_jobs import submit
from tests.api.worker import HandWorker

from fairway.core import upload_quota

SAVE = "/v1/workers/hand-1/checkpoints"


async def save(worker: HandWorker, lease: dict[str, Any], number: int, state: Any) -> Any:
    body = worker.holding(lease, number=number, state=state)
    return await worker.client.post(SAVE, json=body)


async def load(worker: HandWorker, lease: dict[str, Any]) -> Any:
    query = {"tenant": lease["tenant"], "epoch": lease["epoch"]}
    return await worker.client.get(f"{SAVE}/{lease['job']}", params=query)


async def leased(tenant: httpx2.AsyncClient, worker: HandWorker) -> dict[str, Any]:
    await worker.hello(pool="long")
    await submit(tenant, worker.type, pool="long")
    return await worker.lease()


async def test_the_next_run_begins_where_the_last_one_saved(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    lease = await leased(tenant, worker)
    assert "resumes" not in lease
    problem(await load(worker, lease), 404, "NOT_FOUND")
    for number in (1, 2, 3):
        saved = await save(worker, lease, number, {"rows": number})
        assert saved.status_code == 201, saved.text
    view = (await tenant.get(f"/v1/jobs/{lease['job']}")).json()
    assert view["checkpoint"] == saved.json()
    await worker.tell(worker.report(lease, "returned"))
    again = await worker.lease()
    assert again["resumes"] is True
    assert (again["attempt"], again["delivery"]) == (1, 1)
    assert (await load(worker, again)).json()["state"] == {"rows": 3}


async def test_a_run_that_lost_its_lease_saves_nothing(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    lease = await leased(tenant, worker)
    await save(worker, lease, 1, "good")
    await worker.tell(worker.report(lease, "returned"))
    problem(await save(worker, lease, 2, "zombie"), 409, "LEASE_LOST")
    again = await worker.lease()
    problem(await save(worker, lease, 2, "zombie"), 409, "LEASE_LOST")
    problem(await save(worker, again | {"token": "0" * 32}, 2, "forged"), 409, "LEASE_LOST")
    assert (await load(worker, again)).json()["state"] == "good"


async def test_a_worker_of_another_tenant_is_turned_away(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    lease = await leased(tenant, worker)
    await save(worker, lease, 1, "secret")
    name, _ = house.new_tenant()
    async with house.caller(house.new_key({"scope": "worker", "tenant": name})) as client:
        other = HandWorker(client)
        problem(await save(other, lease, 2, "theirs"), 403, "FORBIDDEN")
        problem(await load(other, lease), 403, "FORBIDDEN")
        disguised = await load(other, lease | {"tenant": name})
        problem(disguised, 404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("change", "pointer"),
    [({"number": 0}, "/number"), ({"epoch": 0}, "/epoch"), ({"token": "x"}, "/token")],
)
async def test_bad_fields_are_named(
    tenant: httpx2.AsyncClient, worker: HandWorker, change: dict[str, Any], pointer: str
) -> None:
    lease = await leased(tenant, worker)
    body = worker.holding(lease, number=1, state=1) | change
    problem(await worker.client.post(SAVE, json=body), 422, "INVALID_REQUEST", pointer)


async def test_half_open_requests_hold_up_nobody_else(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = await leased(tenant, worker)
    name, _ = house.new_tenant()
    key = house.new_key({"scope": "worker", "tenant": name})
    head = (
        f"POST {SAVE} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n"
        "content-type: application/json\r\ncontent-length: 60000000\r\n\r\n"
    )
    monkeypatch.setattr(upload_quota, "GRACE_SECONDS", 1.0)
    with ExitStack() as stack:
        silent = []
        for _ in range(8):
            opened = socket.create_connection(("127.0.0.1", house.port), timeout=60)
            silent.append(stack.enter_context(opened))
            opened.sendall(head.encode())
        assert (await save(worker, lease, 1, {"n": 1})).status_code == 201
        answers = await asyncio.gather(*(asyncio.to_thread(one.recv, 4096) for one in silent))
    assert {answer.split()[1] for answer in answers} == {b"408"}
