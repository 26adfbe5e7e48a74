"""What the API says of itself is true: table, routes, schemas and examples agree."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
from collections.abc import Iterator
from typing import Any, get_type_hints

import httpx2
import msgspec
import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import validate
from tests.api.house import House, problem
from tests.api.worker import HandWorker

from fairway import api, wire
from fairway.api.docs import pages
from fairway.api.docs.openapi import document
from fairway.api.docs.problem_notes import PROBLEM_NOTES
from fairway.api.endpoint import Endpoint, endpoints_of
from fairway.api.routes import ENDPOINTS, OPERATIONS, allowed_methods
from fairway.wire.messages import BATCH_MAX
from fairway.wire.problems import CODES

#: What an example gets that is about nobody's lease.
OF_EXAMPLES = {"saveCheckpoint": 409, "loadCheckpoint": 404, "getLeasePayload": 404,
               "getResult": 404}  # fmt: skip

#: Their examples name a dead letter, an action or a quarantine that a fresh server does not have.
OF_WHAT_IS_NOT_THERE = {
    "getDeadLetter", "replayDeadLetter", "discardDeadLetter", "getDeadLetterAction",
    "abortDeadLetterAction", "liftQuarantine",
}  # fmt: skip


def named(operation: Endpoint) -> str:
    return operation.name


# -- the document ------------------------------------------------------------------------------


async def test_the_document_is_valid_openapi(nobody: httpx2.AsyncClient) -> None:
    reply = await nobody.get("/openapi.json")
    assert reply.headers["content-type"] == "application/json"
    found = reply.json()
    assert found["openapi"] == "3.1.0"
    validate(found)


def test_no_endpoint_is_left_out_of_the_table() -> None:
    """A module that is not named there would have no routes, however good its handlers are."""
    found = pkgutil.walk_packages(api.__path__, "fairway.api.")
    modules = [importlib.import_module(one.name) for one in found]
    listed = (*ENDPOINTS, *endpoints_of([pages]))
    assert [(one.method, one.path) for one in endpoints_of(modules) if one not in listed] == []


def test_every_operation_says_what_it_is_for() -> None:
    for one in OPERATIONS:
        assert one.summary, one.name
        assert one.about, one.name
        assert {part.name for part in one.parameters if part.place == "path"} == {
            *re.findall(r"\{(\w+)\}", one.path)
        }
    (batch,) = [one for one in OPERATIONS if one.name == "submitBatch"]
    assert f"Up to {BATCH_MAX:,} jobs" in batch.about


@pytest.mark.parametrize("operation", OPERATIONS, ids=named)
async def test_every_documented_operation_answers(
    nobody: httpx2.AsyncClient, operation: Endpoint
) -> None:
    path = re.sub(r"\{\w+\}", "x", operation.path)
    reply = await nobody.request(operation.method, path)
    assert reply.status_code == (401 if operation.keys else 200)


def test_allowed_methods_come_from_the_table() -> None:
    assert allowed_methods("/v1/jobs") == ["GET", "HEAD", "POST"]
    assert allowed_methods("/v1/jobs/batch") == ["POST"]
    assert allowed_methods("/v1/jobs/x/y") == []


def test_every_field_of_every_message_is_described() -> None:
    kinds = [
        kind
        for found in pkgutil.iter_modules(wire.__path__)
        for kind in vars(importlib.import_module(f"fairway.wire.{found.name}")).values()
        if isinstance(kind, type)
        and issubclass(kind, msgspec.Struct)
        and kind is not msgspec.Struct
    ]
    bare = [
        f"{kind.__name__}.{name}"
        for kind in kinds
        for name, hint in get_type_hints(kind, include_extras=True).items()
        if not any(getattr(one, "description", "") for one in getattr(hint, "__metadata__", ()))
    ]
    assert bare == []
    assert set(document()["components"]["schemas"]) == {kind.__name__ for kind in kinds}


def test_every_code_has_a_note_and_no_note_is_stale() -> None:
    assert set(PROBLEM_NOTES) == set(CODES)


def examples() -> list[Any]:
    """Every example in the document beside the schema it stands under."""
    found = []
    for path, methods in document()["paths"].items():
        for method, node in methods.items():
            bodies = [node["requestBody"]] if "requestBody" in node else []
            for part in (*bodies, *node["responses"].values()):
                for content in part.get("content", {}).values():
                    shown = [one["value"] for one in content.get("examples", {}).values()]
                    shown += [content["example"]] if "example" in content else []
                    found += [
                        pytest.param(content["schema"], one, id=f"{method} {path}") for one in shown
                    ]
    return found


@pytest.mark.parametrize(("schema", "example"), examples())
def test_every_example_obeys_its_schema(schema: dict[str, Any], example: Any) -> None:
    whole = schema | {"components": document()["components"]}
    OAS31Validator(whole).validate(example)


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
    obeys("Health", await tenant.get("/readyz"))


# -- the examples run --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shell(house: House) -> Iterator[dict[str, str]]:
    """The variables that the page tells people to set, and the ids of earlier replies."""
    name, key = house.new_tenant()
    headers = {"authorization": f"Bearer {key}"}
    job = httpx2.post(f"{house.url}/v1/jobs", json={"type": "doc.example"}, headers=headers).json()
    httpx2.delete(f"{house.url}/v1/jobs/{job['id']}", headers=headers)
    spare = house.new_key({"scope": "tenant", "tenant": name})
    yield {
        "FAIRWAY_URL": house.url,
        "FAIRWAY_API_KEY": key,
        "FAIRWAY_WORKER_KEY": house.new_key({"scope": "worker"}),
        "FAIRWAY_OPERATOR_KEY": house.operator_key,
        "JOB": job["id"],
        "ACTION": job["id"],
        "TENANT": name,
        "KEY_ID": spare.split("_")[2],
    }
    # An example reserves slots; kept, nobody else would get any on a server as small as this one.
    operator = {"authorization": f"Bearer {house.operator_key}"}
    path = f"{house.url}/v1/tenants/{name}"
    assert httpx2.patch(path, json={"reserved": {}}, headers=operator).status_code == 200


@pytest.mark.parametrize("operation", OPERATIONS, ids=named)
def test_every_curl_example_runs(operation: Endpoint, shell: dict[str, str]) -> None:
    node = document()["paths"][operation.path][operation.method.lower()]
    command = node["x-codeSamples"][0]["source"].replace(
        "curl ", "curl -s -w '\\n%{http_code}' ", 1
    )
    ran = subprocess.run(
        ["bash", "-euc", command], env=shell, capture_output=True, text=True, timeout=20, check=True
    )
    status = int(ran.stdout.rsplit("\n", 1)[1])
    expected = {reply.status for reply in operation.replies}
    if operation.name in ("cancelJob", "rescheduleJob"):
        expected.add(409)  # the example job has ended already
    if operation.name in OF_WHAT_IS_NOT_THERE:
        expected.add(404)
    if operation.name == "drainWorker":
        expected.add(404)  # the example worker has not said hello, or has left
    expected.add(OF_EXAMPLES.get(operation.name, 0))
    assert status in expected, ran.stdout


# -- the pages ---------------------------------------------------------------------------------


async def test_pages_are_self_contained_and_guarded(nobody: httpx2.AsyncClient) -> None:
    for path in ("/", "/docs", "/problems/not-found"):
        reply = await nobody.get(path)
        assert reply.status_code == 200
        assert reply.headers["content-type"] == "text/html; charset=utf-8"
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert "<script" not in reply.text
        assert " style=" not in reply.text
        assert set(re.findall(r'(?:src|href)="(https?:[^"]*)"', reply.text)) == set()
    css = await nobody.get("/docs.css")
    assert css.headers["content-type"].startswith("text/css")
    assert "url(" not in css.text
    assert "prefers-color-scheme: dark" in css.text


async def test_the_page_shows_every_operation_and_message(nobody: httpx2.AsyncClient) -> None:
    text = (await nobody.get("/docs")).text
    for operation in OPERATIONS:
        assert f'id="{operation.name}"' in text
        assert operation.summary in text
    for name in document()["components"]["schemas"]:
        assert f'id="{name}"' in text
    places = set(re.findall(r'id="([^"]+)"', text))
    assert set(re.findall(r'href="#([^"]+)"', text)) <= places


async def test_every_problem_has_a_page(nobody: httpx2.AsyncClient) -> None:
    for code, (status, title) in CODES.items():
        reply = await nobody.get(f"/problems/{code.lower().replace('_', '-')}")
        assert reply.status_code == 200
        for word in (code, str(status), title.replace("'", "&#x27;")):
            assert word in reply.text
    problem(await nobody.get("/problems/%3Cscript%3E"), 404, "NOT_FOUND")


async def test_the_front_page_leads_on(nobody: httpx2.AsyncClient) -> None:
    text = (await nobody.get("/")).text
    for path in re.findall(r'href="(/[^"]*)"', text):
        assert (await nobody.get(path)).status_code == 200, path
    assert {"/docs", "/openapi.json", "/metrics", "/readyz"} <= set(
        re.findall(r'href="([^"]+)"', text)
    )
