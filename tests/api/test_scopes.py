"""Which kinds of key an operation takes is what its description says: all of it, and no more."""

from __future__ import annotations

import secrets
from typing import Any, NamedTuple

import httpx2
import pytest
from tests.api.house import NO_TLS, House, problem

from fairway.api.docs.openapi import document
from fairway.api.endpoint import Endpoint
from fairway.api.routes import OPERATIONS


class Caller(NamedTuple):
    scope: str | None  # of its key, as the description calls it
    key: str | None
    tenant: str = ""


@pytest.fixture(scope="module")
def callers(house: House) -> list[Caller]:
    name, key = house.new_tenant()
    return [
        Caller(None, None),
        Caller("tenant", key),
        Caller("operator", house.operator_key),
        Caller("worker", house.new_key({"scope": "worker"})),
        Caller("worker", house.new_key({"scope": "worker", "tenant": name}), name),
    ]


@pytest.fixture(scope="module")
def line(house: House) -> Any:
    with httpx2.Client(base_url=house.url, verify=NO_TLS, timeout=30) as client:
        yield client


def asked(line: httpx2.Client, operation: Endpoint, caller: Caller) -> httpx2.Response:
    """As in its example, about things that are not there, and without a body: nothing changes."""
    path, query = operation.path, {}
    for parameter in operation.parameters:
        if parameter.place == "path":
            path = path.replace(f"{{{parameter.name}}}", parameter.example)
        elif parameter.name == "tenant" and caller.tenant:  # a worker speaks for its own tenant
            query["tenant"] = caller.tenant
    headers = {"authorization": f"Bearer {caller.key}"} if caller.key else {}
    return line.request(operation.method, path, params=query, headers=headers)


def declared(operation: Endpoint) -> set[str | None]:
    """Scopes by the published document; None where no key is needed."""
    told = document()["paths"][operation.path][operation.method.lower()]["security"]
    return {name for scheme in told for name in scheme or (None,)} if told else {None}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_each_kind_of_key(line: httpx2.Client, callers: list[Caller], operation: Endpoint) -> None:
    scopes = declared(operation)
    for caller in callers:
        reply = asked(line, operation, caller)
        if caller.scope in scopes or None in scopes:
            assert reply.status_code not in (401, 403), (caller.scope, reply.text)
            assert reply.status_code < 500, reply.text
        elif operation.method == "HEAD":
            assert reply.status_code == (403 if caller.key else 401)
        elif caller.key is None:
            problem(reply, 401, "UNAUTHENTICATED")
        else:
            problem(reply, 403, "FORBIDDEN")


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_a_key_that_is_no_longer_valid(
    line: httpx2.Client, house: House, operation: Endpoint
) -> None:
    """Also where none is needed: who sends a key means to be known by it."""
    if declared(operation) == {None}:
        return
    key = f"fw_operator_{secrets.token_hex(4)}_{secrets.token_hex(16)}"
    assert asked(line, operation, Caller("operator", key)).status_code == 401
