"""Every number that somebody may send has a range; one outside of it is refused, never a 500."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import httpx2
import pytest
from msgspec import inspect
from tests.api.house import House, problem
from tests.api.worker import HandWorker
from tests.api.workers.test_exchange import UNKNOWN

from fairway.api.endpoint import Endpoint
from fairway.api.routes import OPERATIONS

SENDING = [operation for operation in OPERATIONS if operation.body is not None]
ODD_TENANTS = ["#99999999999", "#2147483648", "#-1", "#" + "9" * 5000, "#٣", "", "\x00", "#"]


Number: TypeAlias = inspect.IntType | inspect.FloatType


def numbers(kind: inspect.Type, path: str) -> Iterator[tuple[str, Number]]:
    """All of them in a message, however deep."""
    if isinstance(kind, Number):
        yield path, kind
    for field in getattr(kind, "fields", ()):
        yield from numbers(field.type, f"{path}/{field.encode_name}")
    parts = [getattr(kind, name, None) for name in ("type", "item_type", "key_type", "value_type")]
    for part in [*parts, *getattr(kind, "types", ())]:
        if isinstance(part, inspect.Type):
            yield from numbers(part, path)


def test_the_walk_finds_numbers_where_they_hide() -> None:
    (exchange,) = [one for one in SENDING if one.name == "exchange"]
    found = {path for path, _ in numbers(inspect.type_info(exchange.body), "")}
    assert {"/call", "/wait_ms", "/hello/slots", "/reports/epoch", "/running/epoch"} <= found
    assert "/hello/types/attempts_max" in found


@pytest.mark.parametrize("operation", SENDING, ids=lambda operation: operation.name)
def test_every_number_of_a_body_has_a_range(operation: Endpoint) -> None:
    unbounded = [
        path
        for path, kind in numbers(inspect.type_info(operation.body), "")
        if (kind.ge is None and kind.gt is None) or (kind.le is None and kind.lt is None)
    ]
    assert unbounded == []


@pytest.mark.parametrize("name", ODD_TENANTS, ids=lambda name: repr(name[:12]))
async def test_a_tenant_that_cannot_be_has_no_jobs(
    house: House, worker: HandWorker, name: str
) -> None:
    """S18: any number that does not fit ended in a 500, with a stack in the log."""
    ours, _ = house.new_tenant()
    key = house.new_key({"scope": "worker", "tenant": ours})
    async with house.caller(key) as own:
        for client, refused in ((worker.client, False), (own, True)):
            status, code = (403, "FORBIDDEN") if refused else (404, "NOT_FOUND")
            query = {"tenant": name, "epoch": "1"}
            path = f"/v1/workers/w/payloads/{UNKNOWN}"
            problem(await client.get(path, params=query), status, code)
            path = f"/v1/workers/w/checkpoints/{UNKNOWN}"
            problem(await client.get(path, params=query), status, code)
            save = {"job": UNKNOWN, "tenant": name, "epoch": 1, "token": "0" * 32, "number": 1}
            status, code = (403, "FORBIDDEN") if refused else (409, "LEASE_LOST")
            reply = await client.post("/v1/workers/w/checkpoints", json=save | {"state": 1})
            problem(reply, status, code)


@pytest.mark.parametrize("epoch", ["0", "-1", "9" * 19, "9" * 5000, "1e3", "٣", "", "1.0"])
async def test_an_epoch_that_cannot_be_is_named(
    tenant: httpx2.AsyncClient, worker: HandWorker, epoch: str
) -> None:
    path = f"/v1/workers/w/checkpoints/{UNKNOWN}"
    reply = await worker.client.get(path, params={"tenant": "t", "epoch": epoch})
    problem(reply, 422, "INVALID_REQUEST", "epoch")
