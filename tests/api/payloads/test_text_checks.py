"""What workers say of their runs is looked at as payloads are: nobody's page becomes unreadable.

The client here is Python's own `json`, which reads no integer of over 4300 digits.
"""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.jobs.test_jobs import submit
from tests.api.payloads.test_body_cost import nobody_held_up
from tests.api.worker import HandWorker

MB = 1 << 20
SAVE = "/v1/workers/hand-1/checkpoints"

BAD = {
    "long integer": b"9" * 5001,
    "beyond 64 bits": b"[18446744073709551616]",
    "beyond a double": b'{"n":1e999}',
    "key twice": b'{"a":1,"a":2}',
    "NUL": b'"\\u0000"',
    "deep": b"[" * 70 + b"]" * 70,
    "large": b'["%b",{"n":1e999}]' % (b"x" * MB),
    "many values": b"[" + b"1," * 300_000 + b"-1e999]",
}


async def say(worker: HandWorker, text: bytes, **message: Any) -> dict[str, Any]:
    """An exchange in which HERE stands for this text."""
    body = json.dumps({"session": worker.session, **message}).encode()
    client, path = worker.client, "/v1/workers/hand-1/exchange"
    reply = await client.post(path, content=body.replace(b'"HERE"', text))
    assert reply.status_code == 200, reply.text
    heard: dict[str, Any] = reply.json()
    return heard


async def until_heard(worker: HandWorker, numbers: set[int], heard: dict[str, Any]) -> None:
    left = numbers - {*heard.get("recorded", ()), *heard.get("refused", ())}
    for _ in range(40):
        if not left:
            return
        heard = await worker.say(wait_ms=200)
        left -= {*heard.get("recorded", ()), *heard.get("refused", ())}
    raise AssertionError(f"not heard of: {left}")


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
async def test_a_result_that_nobody_could_read_fails_its_own_job(
    house: House, tenant: httpx2.AsyncClient, worker: HandWorker, text: bytes
) -> None:
    locations = [await submit(tenant, worker.type) for _ in range(3)]
    await worker.hello(slots=3)
    leases = [await worker.lease() for _ in locations]
    reports = [worker.report(one, result="HERE" if n == 1 else n) for n, one in enumerate(leases)]
    async with nobody_held_up(house):
        heard = await say(worker, text, reports=reports)
        await until_heard(worker, {one["n"] for one in reports}, heard)
    jobs = {one["id"]: one for one in (await tenant.get("/v1/jobs")).json()["jobs"]}
    views = [jobs[lease["job"]] for lease in leases]
    assert [one["state"] for one in views] == ["succeeded", "dead", "succeeded"]
    dead = (await tenant.get(f"/v1/jobs/{leases[1]['job']}")).json()
    assert dead["error"]["failure"] == "permanent"
    assert dead["error"]["type"] == "ResultInvalid"
    assert dead["error"]["message"].startswith("The result cannot be kept: ")
    good = [(await tenant.get(f"/v1/jobs/{leases[n]['job']}")).json()["result"] for n in (0, 2)]
    assert good == [0, 2]


@pytest.mark.parametrize(
    "text",
    [b"1.00", b"-0", b'"\\u00e9"', b"[1E5]", b" {} ", b"18446744073709551615", b'"\xc3\xa9"',
     b"[" * 64 + b"]" * 64, b'"%b"' % (b"x" * MB), b'{"a":[{"b":null}]}'],
)  # fmt: skip
async def test_other_results_are_kept_as_they_came(
    tenant: httpx2.AsyncClient, worker: HandWorker, text: bytes
) -> None:
    location = await submit(tenant, worker.type)
    await worker.hello()
    report = worker.report(await worker.lease(), result="HERE")
    await until_heard(worker, {report["n"]}, await say(worker, text, reports=[report]))
    assert (await tenant.get(f"{location}/result")).content == text.strip()


@pytest.mark.parametrize("name", [name for name, text in BAD.items() if len(text) < 4000])
async def test_progress_that_nobody_could_read_is_a_note(
    tenant: httpx2.AsyncClient, worker: HandWorker, name: str
) -> None:
    location = await submit(tenant, worker.type)
    await worker.hello()
    lease = await worker.lease()
    await say(worker, BAD[name], running=[worker.holding(lease, progress="HERE")])
    view = (await tenant.get(location)).json()
    assert view["state"] == "running"
    assert list(view["progress"]) == ["omitted"]
    await worker.tell(worker.report(lease, result=1))
    assert (await tenant.get(location)).json()["state"] == "succeeded"


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
async def test_a_state_that_nobody_could_read_is_refused(
    tenant: httpx2.AsyncClient, worker: HandWorker, text: bytes
) -> None:
    await submit(tenant, worker.type, pool="long")
    await worker.hello(pool="long")
    lease = await worker.lease()
    body = json.dumps(worker.holding(lease, number=1, state="HERE")).encode()
    refused = await worker.client.post(SAVE, content=body.replace(b'"HERE"', text))
    told = problem(refused, 422, "INVALID_REQUEST", "/state")
    assert told["detail"].startswith("The state cannot be kept: ")
    good = await worker.client.post(SAVE, content=body.replace(b'"HERE"', b"1"))
    assert good.status_code == 201, good.text
