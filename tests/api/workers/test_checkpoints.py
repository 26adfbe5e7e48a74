"""Checkpoints over HTTP: who holds the lease may save, who has the key may load, nobody else."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import ExitStack
from typing import Any

import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.jobs.test_jobs import submit
from tests.api.payloads.test_body_cost import nobody_held_up
from tests.api.worker import HandWorker

from fairway.core.object_storage import upload_quota

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
    assert (again["attempt"], again["delivery"]) == (1, 2)
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


async def heard(house: House, key: str, begun: bytes) -> bytes:
    """The answer to a save of 60 MB of which no more than this has come."""
    head = (
        f"POST {SAVE} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n"
        "content-type: application/json\r\ncontent-length: 60000000\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", house.port), timeout=60) as opened:
        opened.sendall(head.encode() + begun)
        return await asyncio.to_thread(opened.recv, 65536)


async def test_a_lease_that_is_not_in_force_is_refused_before_its_state_is_read(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_quota, "GRACE_SECONDS", 5.0)
    lease = await leased(tenant, worker) | {"token": "0" * 32}
    begun = json.dumps(worker.holding(lease, number=1, state="x" * 9000)).encode()[:8000]
    answer = await heard(house, house.new_key({"scope": "worker"}), begun)
    assert b" 409 " in answer.partition(b"\r\n")[0], answer
    assert b"LEASE_LOST" in answer


async def test_an_invented_lease_leaves_no_object_whatever_the_order(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = await leased(tenant, worker)
    objects, written = house.platform.large_data.checkpoints._objects, []
    really_put = objects.put

    async def put(name: str, body: Any) -> None:
        written.append(name)
        await really_put(name, body)

    monkeypatch.setattr(objects, "put", put)
    state = {"state": "x" * (2 << 20)}  # first: only the whole body shows the lease
    body = state | worker.holding(lease | {"token": "0" * 32}, number=1)
    problem(await worker.client.post(SAVE, json=body), 409, "LEASE_LOST")
    assert not written


async def test_a_state_of_too_many_values_is_refused_and_a_large_one_kept(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    lease = await leased(tenant, worker)
    envelope = json.dumps(worker.holding(lease, number=1)).encode()[:-1]
    async with nobody_held_up(house):
        many = envelope + b',"state":[' + b"1," * 4_000_000 + b"1]}"
        problem(await worker.client.post(SAVE, content=many), 413, "TOO_MANY_VALUES")
        long = envelope + b',"state":"' + "é".encode() * (20 << 20) + b'"}'
        assert (await worker.client.post(SAVE, content=long)).status_code == 201


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
