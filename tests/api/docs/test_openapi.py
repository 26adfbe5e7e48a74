"""The OpenAPI document: valid, and real replies obey it."""

from __future__ import annotations

import re

import httpx2
import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import validate
from tests.api.docs.test_pages import named
from tests.api.worker import HandWorker

from fairway.api.docs.openapi import document
from fairway.api.endpoint import Endpoint
from fairway.api.routes import OPERATIONS


async def test_the_document_is_valid_openapi(nobody: httpx2.AsyncClient) -> None:
    reply = await nobody.get("/openapi.json")
    assert reply.headers["content-type"] == "application/json"
    found = reply.json()
    assert found["openapi"] == "3.1.0"
    validate(found)


@pytest.mark.parametrize("operation", OPERATIONS, ids=named)
async def test_every_documented_operation_answers(
    nobody: httpx2.AsyncClient, operation: Endpoint
) -> None:
    path = re.sub(r"\{\w+\}", "x", operation.path)
    reply = await nobody.request(operation.method, path)
    without_key = 200 if operation.body is None else 400  # there is nothing to read
    assert reply.status_code == (401 if operation.keys else without_key)


def test_operators_are_told_where_they_may_act_for_a_tenant() -> None:
    for operation in OPERATIONS:
        told = document()["paths"][operation.path][operation.method.lower()]
        names = [one["name"] for one in told["parameters"]]
        wanted = "tenant" in operation.keys and "operator" not in operation.keys
        assert ("Fairway-Tenant" in names) == wanted, operation.call
        assert "404" in told["responses"] or not wanted, operation.call


async def test_real_replies_obey_the_schemas(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    schemas = {"components": document()["components"]}

    def obeys(name: str, reply: httpx2.Response) -> None:
        ref = {"$ref": f"#/components/schemas/{name}"}
        OAS31Validator(ref | schemas).validate(reply.json())

    await worker.hello()
    accepted = await tenant.post("/v1/jobs", json={"type": worker.type})
    obeys("JobAccepted", accepted)
    obeys("JobView", await tenant.get(accepted.headers["location"]))
    await worker.run(result=[1])
    obeys("JobView", await tenant.get(accepted.headers["location"]))
    for part in ("payload", "result"):
        told = document()["paths"][f"/v1/jobs/{{id}}/{part}"]["get"]["responses"]["200"]
        schema = told["content"]["application/json"]["schema"]
        real = await tenant.get(f"{accepted.headers['location']}/{part}")
        OAS31Validator(schema | schemas).validate(real.json())
    obeys("JobList", await tenant.get("/v1/jobs"))
    obeys("BatchReply", await tenant.post("/v1/jobs/batch", json={"jobs": [{"type": "a"}, {}]}))
    obeys("Problem", await tenant.post("/v1/jobs", json={}))
    obeys("ExchangeReply", await worker.post())
    obeys("SessionView", await tenant.get("/session"))
    obeys("Health", await tenant.get("/readyz"))
