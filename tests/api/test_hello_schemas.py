"""Schemas in a hello: looked at when they are news, of those who speak for all, one at a time."""

from __future__ import annotations

import threading
from typing import Any

import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.worker import HandWorker

from fairway.api.payloads import payload_schema
from fairway.api.payloads.payload_schema import SCHEMA_BYTES_MAX
from fairway.api.workers import exchange

SCHEMA = {"properties": {"to": {"type": "string"}}, "required": ["to"]}


@pytest.fixture
def compilers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads that compiled a schema, as it happens."""
    names: list[str] = []

    def watched(schema: Any) -> Any:
        names.append(threading.current_thread().name)
        return compiled(schema)

    compiled = payload_schema.compiled
    for module in (payload_schema, exchange):
        monkeypatch.setattr(module, "compiled", watched, raising=False)
    return names


async def greet(worker: HandWorker, *types: dict[str, Any]) -> httpx2.Response:
    return await worker.post(hello={"types": list(types), "slots": {"short": 1}}, running=[])


async def test_only_what_is_news_is_compiled_and_not_on_the_loop(
    house: House, worker: HandWorker, operator: httpx2.AsyncClient, compilers: list[str]
) -> None:
    for _ in range(3):
        reply = await greet(worker, {"name": worker.type, "schema": SCHEMA})
        assert reply.status_code == 200, reply.text
    assert len(compilers) == 1
    assert "house" not in compilers
    told = (await operator.get(f"/v1/job-types/{worker.type}")).json()
    assert told["schema"] == SCHEMA


async def test_those_of_a_tenants_own_worker_are_not_looked_at(
    house: House, compilers: list[str]
) -> None:
    name, _ = house.new_tenant()
    async with house.caller(house.new_key({"scope": "worker", "tenant": name})) as client:
        worker = HandWorker(client)
        said = {"name": worker.type, "schema": {"type": "no such type"}}
        assert (await greet(worker, said)).status_code == 200
        await worker.leave()
    assert compilers == []


async def test_one_too_large_is_refused_before_it_is_compiled(
    worker: HandWorker, compilers: list[str]
) -> None:
    large = {"enum": ["x" * SCHEMA_BYTES_MAX]}
    problem(await greet(worker, {"name": worker.type, "schema": large}), 422, "INVALID_REQUEST",
            "/schema")  # fmt: skip
    assert compilers == []


async def test_a_type_is_named_once(worker: HandWorker, compilers: list[str]) -> None:
    said = {"name": worker.type, "schema": SCHEMA}
    reply = await greet(worker, said, said)
    problem(reply, 422, "INVALID_REQUEST", "/hello/types")
    assert compilers == []


async def test_a_hello_holds_so_many_values(worker: HandWorker) -> None:
    """Results may hold more: they are taken apart, not decoded. A hello is decoded in one go."""
    many: dict[str, Any] = {"enum": [[]] * 150_000}
    reply = await greet(worker, {"name": worker.type, "schema": many})
    problem(reply, 413, "TOO_MANY_VALUES")


async def test_a_type_for_a_pool_that_is_not_there_is_named_and_the_others_run(
    worker: HandWorker, tenant: httpx2.AsyncClient
) -> None:
    lost = f"{worker.type}.lost"
    reply = await greet(worker, {"name": lost, "pool": "not-there"}, {"name": worker.type})
    assert reply.status_code == 200, reply.text
    assert reply.json()["refused_types"] == [lost]
    assert reply.json()["refused_why"][lost].startswith("It is for the pool 'not-there'; there are")
    await tenant.post("/v1/jobs", json={"type": worker.type})
    assert (await worker.lease())["type"] == worker.type
