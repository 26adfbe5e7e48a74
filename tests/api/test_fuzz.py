"""Whatever comes in, the answer is a good one or a problem with a 4xx, and the server lives on."""

from __future__ import annotations

import json
import socket
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.api.house import NO_TLS, House, problem
from tests.properties import FACTOR

EXAMPLES = 20 * FACTOR
quick = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
FIELD = st.sampled_from(
    ["type", "payload", "pool", "priority", "timeout_seconds", "jobs", "session", "hello", "types",
     "slots", "reports", "running", "name", "weight", "scope", "tenant", "state"]
)  # fmt: skip
MESSAGE = st.dictionaries(FIELD, JSON, max_size=5) | JSON
JOB = st.fixed_dictionaries(
    {"type": st.just("fuzz.it")},
    optional={
        "payload": st.dictionaries(st.text(max_size=8), JSON, max_size=4) | JSON,
        "priority": st.integers(-2, 12) | JSON,
        "pool": st.sampled_from(["short", "medium", "huge", ""]) | JSON,
        "timeout_seconds": st.floats() | JSON,
    },
)
DOORS = st.sampled_from(
    [
        ("tenant", "/v1/jobs"),
        ("tenant", "/v1/jobs/batch"),
        ("worker", "/v1/workers/fuzz/exchange"),
        ("operator", "/v1/tenants"),
        ("operator", "/v1/keys"),
    ]
)


@pytest.fixture(scope="module")
def keys(house: House) -> dict[str, str]:
    return {
        "tenant": house.new_tenant()[1],
        "worker": house.new_key({"scope": "worker"}),
        "operator": house.operator_key,
    }


@pytest.fixture(scope="module")
def line(house: House) -> Any:
    with httpx2.Client(base_url=house.url, verify=NO_TLS, timeout=30) as client:
        yield client


def judge(reply: httpx2.Response) -> None:
    assert reply.status_code < 500, reply.text
    if reply.status_code >= 400:
        problem(reply, reply.status_code, reply.json()["code"])
    elif reply.content:
        reply.json()


@quick
@given(door=DOORS, message=MESSAGE | st.builds(lambda jobs: {"jobs": jobs}, st.lists(JOB | JSON)))
def test_random_json(
    keys: dict[str, str], line: httpx2.Client, door: tuple[str, str], message: Any
) -> None:
    scope, path = door
    headers = {"authorization": f"Bearer {keys[scope]}"}
    judge(line.post(path, content=json.dumps(message), headers=headers))


@quick
@given(job=JOB)
def test_random_jobs_come_back_as_they_went_in(
    keys: dict[str, str], line: httpx2.Client, job: dict[str, Any]
) -> None:
    headers = {"authorization": f"Bearer {keys['tenant']}"}
    reply = line.post("/v1/jobs", content=json.dumps(job), headers=headers)
    judge(reply)
    if reply.status_code == 202:
        found = line.get(reply.headers["location"], headers=headers).json()
        assert found["payload"] == job.get("payload", {})


@quick
@given(door=DOORS, body=st.binary(max_size=200) | st.text().map(str.encode))
def test_random_bytes(
    keys: dict[str, str], line: httpx2.Client, door: tuple[str, str], body: bytes
) -> None:
    scope, path = door
    judge(line.post(path, content=body, headers={"authorization": f"Bearer {keys[scope]}"}))


@quick
@given(
    method=st.sampled_from(["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"]),
    path=st.lists(
        st.sampled_from(["v1", "jobs", "batch", "keys", "%00", "a", "..", "events", "é"])
    ),
    query=st.text(max_size=30),
)
def test_random_addresses(
    keys: dict[str, str], line: httpx2.Client, method: str, path: list[str], query: str
) -> None:
    headers = {"authorization": f"Bearer {keys['tenant']}"}
    reply = line.request(method, "/" + "/".join(path), params={query: query}, headers=headers)
    assert reply.status_code < 500
    assert reply.status_code < 400 or method == "HEAD" or reply.json()["code"]


@quick
@given(noise=st.binary(max_size=300))
def test_random_noise_on_the_line(house: House, line: httpx2.Client, noise: bytes) -> None:
    with socket.create_connection(("127.0.0.1", house.port), timeout=5) as raw:
        raw.sendall(noise + b"\r\n\r\n")
        raw.shutdown(socket.SHUT_WR)
        answer = raw.recv(64)
    assert not answer.startswith(b"HTTP/1.1 5")


def test_the_server_lives(line: httpx2.Client) -> None:
    assert line.get("/readyz").json()["status"] == "ok"
