"""Bodies that take long to look at hold nobody up, and what is refused is not free."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from tests.api.house import House, problem
from tests.api.worker import HandWorker

from fairway.api.jobs import submit
from fairway.api.payloads import body_cost
from fairway.core.errors import InvalidRequest
from fairway.sdk.client.backend import Submission
from fairway.sdk.client.client import Client
from fairway.sdk.http.settings import ClientSettings
from fairway.services.platform import Platform
from fairway.wire.bounds import ITEMS_MAX
from fairway.wire.messages import JobRequest

MANY = b"[" + b"1," * 3_900_000 + b"1]"  # 7.8 MB
STALL_SECONDS = 0.15  # of the loop's own processor time, on any machine; seconds without the bound


async def _forget_stalls(platform: Platform) -> None:
    platform.stalls.forget()


@asynccontextmanager
async def nobody_held_up(house: House) -> AsyncIterator[None]:
    """The loop's own thread computes for no longer than this in one go, and answers others.

    A codec that holds the interpreter in another thread does not show here: what bounds that is
    the number of values, which the tests below ask for by its code.
    """
    house.inside(_forget_stalls)
    async with house.caller() as other:
        is_over = asyncio.Event()
        asking = asyncio.create_task(_ask(other, is_over))
        try:
            yield
        finally:
            is_over.set()
            async with asyncio.timeout(40):
                await asking
    assert house.platform.stalls.longest().busy_seconds < STALL_SECONDS


async def _ask(other: httpx2.AsyncClient, is_over: asyncio.Event) -> None:
    while not is_over.is_set():
        assert (await other.get("/livez")).status_code == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/jobs/batch", b'{"jobs":' + MANY + b"}"),
        ("/v1/jobs/batch", b'{"jobs":[{"type":"t","payload":{"x":' + MANY + b"}}]}"),
        ("/v1/jobs", b'{"type":"t","payload":{"x":' + MANY + b"}}"),
    ],
    ids=["a batch of numbers", "one large item", "one job"],
)
async def test_millions_of_values_are_refused_and_charged(
    house: House, path: str, body: bytes
) -> None:
    _, key = house.new_tenant(rate_per_second=10, burst=100)
    async with house.caller(key) as tenant:
        async with nobody_held_up(house):
            told = problem(await tenant.post(path, content=body), 413, "TOO_MANY_VALUES")["detail"]
        assert "POST /v1/uploads" in told
        assert ("300000" if path.endswith("batch") else "100000") in told
        again = problem(await tenant.post(path, content=body), 429, "TENANT_RATE_LIMIT_EXCEEDED")
        assert "counts towards your rate" in again["detail"]


@pytest.mark.parametrize(
    ("path", "envelope"),
    [
        ("/v1/jobs", b'{"type":"t","payload":{"x":1,"x":"%b"}}'),
        ("/v1/jobs/batch", b'{"jobs":{"x":"%b"}}'),
        ("/v1/schedule-preview", b'{"type":"t","cron":"@daily","payload":{"x":1,"x":"%b"}}'),
    ],
)
async def test_bodies_of_a_few_pages_are_charged_too(
    house: House, path: str, envelope: bytes
) -> None:
    _, key = house.new_tenant(rate_per_second=1, burst=5)
    body = envelope % (b"x" * (40 << 10))
    async with house.caller(key) as tenant:
        statuses = [(await tenant.post(path, content=body)).status_code for _ in range(5)]
    assert statuses[0] in (400, 422)
    assert statuses[-1] == 429


async def test_previews_of_large_payloads_are_not_free(house: House) -> None:
    _, key = house.new_tenant(rate_per_second=1, burst=5)
    wanted = {"type": "t", "cron": "0 0 * * *", "payload": {"x": "x" * (40 << 10)}}
    async with house.caller(key) as tenant:
        replies = [await tenant.post("/v1/schedule-preview", json=wanted) for _ in range(5)]
    assert replies[0].status_code == 200, replies[0].text
    problem(replies[-1], 429, "TENANT_RATE_LIMIT_EXCEEDED")


async def test_a_large_payload_of_text_is_taken_however_many_commas_it_has(house: House) -> None:
    _, key = house.new_tenant()
    text = 'a, "quoted", [bracketed] {text} with a \\ in it, ' * 20_000  # 1 MB, 140 000 commas
    async with house.caller(key) as tenant, nobody_held_up(house):
        body = {"type": "t", "payload": {"text": text}}
        assert (await tenant.post("/v1/jobs", json=body)).status_code == 202
        batch = await tenant.post("/v1/jobs/batch", json={"jobs": [body]})
        assert batch.json()["accepted"] == 1


async def test_many_large_bodies_at_a_time_stand_in_line(house: House) -> None:
    _, key = house.new_tenant()
    body = {"type": "t", "payload": {"text": "a, \\u00e9 " * 60_000}}  # 480 KB, to be looked at
    async with house.caller(key) as tenant, nobody_held_up(house):
        replies = await asyncio.gather(*(tenant.post("/v1/jobs", json=body) for _ in range(24)))
    assert {reply.status_code for reply in replies} == {202}


async def test_a_full_batch_of_ordinary_jobs_is_taken(house: House) -> None:
    _, key = house.new_tenant(rate_per_second=1000, burst=10_000, depth_limit=50_000)
    payload = {f"field {n}": n for n in range(15)}
    jobs = [{"type": "t", "payload": payload} for _ in range(5000)]
    async with house.caller(key) as tenant:
        reply = await tenant.post("/v1/jobs/batch", json={"jobs": jobs})
        assert reply.json()["accepted"] == 5000


@pytest.fixture
async def client(house: House) -> AsyncIterator[Client]:
    _, key = house.new_tenant(rate_per_second=1000, burst=10_000, depth_limit=50_000)
    client = Client(ClientSettings(url=house.url, api_key=key))
    yield client
    await client.aclose()


def submission(payload: object) -> Submission:
    request = JobRequest(type="t", payload=Raw(json.dumps(payload).encode()))
    return Submission(None, request)  # type: ignore[arg-type]  # the client does not look at it


async def test_a_payload_with_many_values_is_taken_from_the_sdk(client: Client) -> None:
    many = {"vector": [0.5] * 150_000}
    job = await client.submit(submission(many))
    assert (await client.view(job)).payload_bytes == len(json.dumps(many))
    answers = await client.submit_many([submission({}), submission(many), submission({})])
    assert all(isinstance(answer, str) for answer in answers), answers


async def test_many_ordinary_jobs_are_taken_from_the_sdk(client: Client) -> None:
    payload = {f"field {n}": n for n in range(30)}
    answers = await client.submit_many([submission(payload)] * 10_000)
    assert len({answer for answer in answers if isinstance(answer, str)}) == 10_000


async def test_a_call_with_too_many_reports_is_refused(house: House, worker: HandWorker) -> None:
    report = {
        "n": 1, "job": "01900000-0000-7000-8000-000000000001", "tenant": "t", "epoch": 1,
        "token": "1" * 32, "kind": "succeeded", "ran_us": 1,
    }  # fmt: skip
    one = json.dumps(report).encode()
    body = b'{"session":"%s","reports":[%s]}' % (
        secrets.token_hex(16).encode(),
        b",".join([one] * (ITEMS_MAX + 1)),
    )
    async with nobody_held_up(house):
        reply = await worker.client.post("/v1/workers/w/exchange", content=body)
    problem(reply, 413, "TOO_MANY_VALUES", "/reports")


async def test_a_full_call_of_other_ends_is_heard_in_parts(
    house: House, worker: HandWorker
) -> None:
    await worker.hello()
    report = {
        "job": "01900000-0000-7000-8000-000000000001", "tenant": "t", "epoch": 1,
        "token": "1" * 32, "kind": "snoozed", "ran_us": 1,
    }  # fmt: skip
    async with nobody_held_up(house):
        heard = await worker.say(reports=[report | {"n": n} for n in range(ITEMS_MAX)])
    assert len(heard["refused"]) == ITEMS_MAX


async def test_a_large_result_passes(house: House, worker: HandWorker) -> None:
    _, key = house.new_tenant()
    async with house.caller(key) as tenant:
        await worker.hello(slots=1)
        job = (await tenant.post("/v1/jobs", json={"type": worker.type})).json()["id"]
        lease = await worker.lease()
        async with nobody_held_up(house):
            await worker.tell(worker.report(lease, result={"text": "é, " * 300_000}))
        assert (await tenant.get(f"/v1/jobs/{job}")).json()["state"] == "succeeded"


# -- counting ------------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.integers() | st.text(st.sampled_from('a,[{"\\:é\n'), max_size=8),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=40,
)


def values_in(value: object) -> int:
    """Brackets that open and commas that part: what the count stands for."""
    if isinstance(value, dict):
        return 1 + max(len(value) - 1, 0) + sum(map(values_in, value.values()))
    if isinstance(value, list):
        return 1 + max(len(value) - 1, 0) + sum(map(values_in, value))
    return 0


@given(VALUES, st.booleans(), st.integers(1, 7))
def test_what_stands_in_strings_is_not_counted(
    value: object, ascii_only: bool, chunk_bytes: int
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only).encode()
    count = values_in(value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(body_cost, "CHUNK_BYTES", chunk_bytes)  # every string crosses several
        body_cost.weigh(text, count)
        if count > 1:
            with pytest.raises(InvalidRequest):
                body_cost.weigh(text, count - 1)


async def test_a_batch_that_must_wait_is_refused_before_it_is_looked_at(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand tiny jobs are a light body: to understand them over and over is the attack."""
    looks, new_job = [], submit.new_job

    def counted(*given: Any) -> Any:
        looks.append(1)
        return new_job(*given)

    monkeypatch.setattr(submit, "new_job", counted)
    _, key = house.new_tenant(rate_per_second=1, burst=100)
    body = {"jobs": [{"type": "t"}] * 10_000}
    async with house.caller(key) as tenant:
        await tenant.post("/v1/jobs", json={"type": "t"})
        looks.clear()
        for _ in range(3):
            reply = await tenant.post("/v1/jobs/batch", json=body)
            problem(reply, 429, "TENANT_RATE_LIMIT_EXCEEDED")
    assert not looks
