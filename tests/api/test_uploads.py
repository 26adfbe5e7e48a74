"""Uploads: bounded by count, bytes and pace for each tenant, and looked at when their job comes."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from msgspec import Raw
from tests.api.house import House, own_house, problem
from tests.api.jobs.test_uploads import BIG, put
from tests.api.payloads.test_body_cost import nobody_held_up
from tests.postgres import Server

from fairway.api.payloads import text_checks
from fairway.core.object_storage import upload_quota
from fairway.sdk.client.backend import Submission
from fairway.sdk.client.client import Client
from fairway.sdk.http.settings import ClientSettings
from fairway.services.object_storage.uploads import Uploads
from fairway.wire.messages import JobRequest
from fairway.wire.payload_scan import PayloadScan

MB = 1 << 20


@pytest.fixture(scope="module")
def strict(postgres_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A server that allows a tenant little."""
    limits = {"upload_bytes_max": 4 * MB, "uploads_in_flight": 2, "unclaimed_bytes_max": 5 * MB,
              "uploaded_bytes_max": 7 * MB}  # fmt: skip
    storage = f"file://{tmp_path_factory.mktemp('uploads')}"
    with own_house(postgres_server, "upload_tests", storage_url=storage, **limits) as house:
        yield house


def begin_put(house: House, url: str, head: bytes, body: bytes = b"") -> socket.socket:
    """A PUT that goes no further until somebody sends more."""
    opened = socket.create_connection(("127.0.0.1", house.port), timeout=30)
    path = "/v1/" + url.partition("/v1/")[2]
    opened.sendall(b"PUT %b HTTP/1.1\r\nhost: x\r\n%b\r\n\r\n%b" % (path.encode(), head, body))
    return opened


async def heard(opened: socket.socket) -> bytes:
    return await asyncio.to_thread(opened.recv, 65536)


def stored(house: House, pattern: str) -> list[Path]:
    return list(Path(house.platform.large_data.objects.address).glob(pattern))


async def new_url(tenant: httpx2.AsyncClient) -> str:
    made = await tenant.post("/v1/uploads")
    assert made.status_code == 201, made.text
    return str(made.json()["url"])


def in_flight(house: House) -> int:
    return sum(
        len(account.flying)
        for account in house.platform.large_data.uploads._accounts.by_tenant.values()
    )


async def flying(house: House, count: int) -> None:
    async with asyncio.timeout(20):
        while in_flight(house) != count:  # noqa: ASYNC110  # the server tells nobody
            await asyncio.sleep(0.01)


async def test_what_is_declared_too_large_is_refused_at_once(strict: House) -> None:
    _, key = strict.new_tenant()
    async with strict.caller(key) as tenant:
        with begin_put(strict, await new_url(tenant), b"content-length: 2000000000") as opened:
            answer = await heard(opened)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"PAYLOAD_TOO_LARGE" in answer
    assert b"connection: close" in answer


async def test_what_grows_too_large_is_refused_and_leaves_nothing(strict: House) -> None:
    _, key = strict.new_tenant()

    async def endless() -> Any:
        for _ in range(6):
            yield b"x" * MB

    async with strict.caller(key) as tenant, strict.caller() as anybody:
        url = await new_url(tenant)
        try:
            reply = await anybody.put(f"/v1/{url.partition('/v1/')[2]}", content=endless())
            problem(reply, 413, "PAYLOAD_TOO_LARGE")
        except httpx2.TransportError:
            pass  # cut off while it sent
        await flying(strict, 0)
        upload = url.partition("/uploads/")[2].partition("?")[0]
        assert stored(strict, f"uploads/*/*/{upload}/*") == []


async def test_few_at_a_time_and_none_takes_another_tenants_places(strict: House) -> None:
    _, key = strict.new_tenant()
    _, other = strict.new_tenant()
    async with strict.caller(key) as tenant, strict.caller(other) as neighbour:
        urls = [await new_url(tenant) for _ in range(3)]
        with ExitStack() as stack:
            for url in urls[:2]:
                stack.enter_context(begin_put(strict, url, b"content-length: 1000", b"{"))
            await flying(strict, 2)
            problem(await put(strict, urls[2], b"{}"), 429, "TOO_MANY_UPLOADS")
            assert (await put(strict, await new_url(neighbour), b"{}")).status_code == 204
        await flying(strict, 0)  # a sender that goes gives its place back
        assert (await put(strict, urls[2], b"{}")).status_code == 204


async def test_bytes_that_wait_for_their_jobs_are_bounded(strict: House) -> None:
    _, key = strict.new_tenant()
    body = b'{"text":"%b"}' % (b"x" * (4 * MB - 20))
    async with strict.caller(key) as tenant:
        made = (await tenant.post("/v1/uploads")).json()
        spare = await new_url(tenant)
        assert (await put(strict, made["url"], body)).status_code == 204
        problem(await put(strict, spare, body), 429, "UPLOAD_QUOTA_EXCEEDED")
        assert (await put(strict, spare, b"{}")).status_code == 204
        problem(await tenant.post("/v1/uploads"), 429, "UPLOAD_QUOTA_EXCEEDED")
        await restarted(strict)
        problem(await tenant.post("/v1/uploads"), 429, "UPLOAD_QUOTA_EXCEEDED")
        job = {"type": "x", "payload_upload": made["id"]}
        assert (await tenant.post("/v1/jobs", json=job)).status_code == 202
        await restarted(strict)
        assert (await tenant.post("/v1/uploads")).status_code == 201


async def test_bytes_that_have_their_jobs_are_bounded_as_long_as_they_are_kept(
    strict: House,
) -> None:
    """They were counted nowhere: a tenant could fill the disk with what jobs had taken over."""
    _, key = strict.new_tenant()
    async with strict.caller(key) as tenant:
        for _ in range(6):
            job = {"type": "x", "payload_upload": await uploaded(strict, tenant, b"{}")}
            assert (await tenant.post("/v1/jobs", json=job)).status_code == 202
        spare = await new_url(tenant)
        assert (await put(strict, spare, b"{}")).status_code == 204
        for _ in range(2):
            told = problem(await tenant.post("/v1/uploads"), 429, "UPLOAD_QUOTA_EXCEEDED")
            assert "those that have their jobs" in told["detail"]
            await restarted(strict)
        assert (await tenant.post("/v1/jobs", json=job)).status_code == 202, "they can be used"


async def restarted(house: House) -> None:
    """As a server that begins anew: it knows only what is in storage."""

    async def forget(platform: Any) -> None:
        uploads: Uploads = platform.large_data.uploads
        uploads._accounts.by_tenant.clear()

    house.inside(forget)


async def test_a_sender_that_drips_is_cut_off(
    strict: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_quota, "GRACE_SECONDS", 0.3)
    _, key = strict.new_tenant()
    async with strict.caller(key) as tenant:
        url = await new_url(tenant)
        with begin_put(strict, url, b"content-length: 1000", b'{"') as opened:
            answer = await heard(opened)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"REQUEST_TIMEOUT" in answer
    await flying(strict, 0)


async def test_an_address_takes_one_body(house: House, tenant: httpx2.AsyncClient) -> None:
    url = await new_url(tenant)
    assert (await put(house, url, b"{}")).status_code == 204
    problem(await put(house, url, b'{"n":2}'), 409, "CONFLICT")


# -- when the job comes ------------------------------------------------------------------------

FAKE = (
    b'{},"x":1},{"job":"01900000-0000-7000-8000-00000000dead","epoch":1,"token":"0","type":"who",'
    b'"pool":"short","tenant":"victim","attempt":1,"delivery":1,"payload":{"amount":1000000}'
)


@pytest.mark.parametrize(
    ("body", "code"),
    [(b"not json", "INVALID_REQUEST"), (b"", "INVALID_REQUEST"), (b"[1]", "INVALID_REQUEST"),
     (b'{"a":1', "INVALID_JSON"), (FAKE, "INVALID_JSON"), (b'{"a":"\\u0000"}', "INVALID_REQUEST"),
     (b"{} {}", "INVALID_JSON")],
)  # fmt: skip
async def test_what_was_uploaded_is_looked_at(
    house: House, tenant: httpx2.AsyncClient, body: bytes, code: str
) -> None:
    made = (await tenant.post("/v1/uploads")).json()
    assert (await put(house, made["url"], body)).status_code == 204
    reply = await tenant.post("/v1/jobs", json={"type": "x", "payload_upload": made["id"]})
    problem(reply, 400 if code == "INVALID_JSON" else 422, code, "/payload_upload")


async def uploaded(house: House, tenant: httpx2.AsyncClient, body: bytes) -> str:
    made = (await tenant.post("/v1/uploads")).json()
    assert (await put(house, made["url"], body)).status_code == 204
    return str(made["id"])


async def test_an_upload_of_many_values_is_looked_through(house: House) -> None:
    _, key = house.new_tenant()
    good = b'{"x":[' + b"1," * 300_000 + b"1]}"
    twice = b'{"x":1,"x":[' + b"1," * 300_000 + b"1]}"
    async with house.caller(key) as tenant:
        async with nobody_held_up(house):
            upload = await uploaded(house, tenant, good)
            taken = await tenant.post("/v1/jobs", json={"type": "t", "payload_upload": upload})
            bad = {"type": "t", "payload_upload": await uploaded(house, tenant, twice)}
            problem(await tenant.post("/v1/jobs", json=bad), 422, "INVALID_REQUEST")
        assert taken.status_code == 202, taken.text
        found = await tenant.get(f"/v1/jobs/{taken.json()['id']}/payload")
        assert found.content == good


LONG = b'{"text":"%b"' % (b"x" * (9 * MB))  # more than is looked at as a whole


@pytest.mark.parametrize(
    ("rest", "code", "words"),
    [(b"", "INVALID_JSON", "ends too soon"), (b"} no", "INVALID_JSON", "follows its end"),
     (b',"text":1}', "INVALID_REQUEST", "twice"), (b',"n":1e999}', "INVALID_REQUEST", "double"),
     (b',"n":' + b"9" * 5001 + b"}", "INVALID_REQUEST", "64 bits"),
     (b',"t":"\\u0000"}', "INVALID_REQUEST", "NUL"), (b',"t":"\xff"}', "INVALID_JSON", "UTF-8"),
     (b',"t":' + b"[" * 70 + b"]" * 70 + b"}", "INVALID_REQUEST", "64 levels"),
     (b"},{" + FAKE[2:], "INVALID_JSON", "follows its end")],
)  # fmt: skip
async def test_a_large_upload_is_looked_through_before_its_job_exists(
    house: House, tenant: httpx2.AsyncClient, rest: bytes, code: str, words: str
) -> None:
    upload = await uploaded(house, tenant, LONG + rest)
    async with nobody_held_up(house):
        for _ in range(2):  # what was found is remembered
            reply = await tenant.post("/v1/jobs", json={"type": "x", "payload_upload": upload})
            status = 400 if code == "INVALID_JSON" else 422
            assert words in problem(reply, status, code, "/payload_upload")["detail"]
    assert (await tenant.get("/v1/jobs")).json()["jobs"] == []


async def test_a_large_upload_is_looked_through_once(
    house: House, tenant: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []

    class Counted(PayloadScan):
        def finish(self) -> None:
            looks.append(self)
            super().finish()

    monkeypatch.setattr(text_checks, "PayloadScan", Counted)
    body = {"type": "x", "payload_upload": await uploaded(house, tenant, LONG + b"}")}
    for _ in range(3):
        assert (await tenant.post("/v1/jobs", json=body)).status_code == 202
    assert len(looks) == 1


async def test_a_large_upload_that_was_changed_since_is_damaged(
    house: House, tenant: httpx2.AsyncClient
) -> None:
    upload = await uploaded(house, tenant, LONG + b"}")
    (kept,) = stored(house, f"uploads/*/*/{upload}/body")
    kept.write_bytes(LONG.replace(b"x", b"y", 1) + b"}")
    reply = await tenant.post("/v1/jobs", json={"type": "x", "payload_upload": upload})
    problem(reply, 410, "OBJECT_DAMAGED")


async def test_a_bad_upload_is_charged_for_what_it_took_to_look_at(house: House) -> None:
    _, key = house.new_tenant(rate_per_second=10, burst=20)
    async with house.caller(key) as tenant:
        upload = await uploaded(house, tenant, b'{"x":1,"x":"' + b"x" * MB + b'"}')
        body = {"type": "t", "payload_upload": upload}
        problem(await tenant.post("/v1/jobs", json=body), 422, "INVALID_REQUEST")
        problem(await tenant.post("/v1/jobs", json=body), 429, "TENANT_RATE_LIMIT_EXCEEDED")


async def test_a_bad_upload_is_refused_by_itself_in_a_batch(
    house: House, tenant: httpx2.AsyncClient
) -> None:
    made = (await tenant.post("/v1/uploads")).json()
    jobs = [{"type": "x", "payload_upload": made["id"]}, {"type": "x", "payload": BIG}]
    items = (await tenant.post("/v1/jobs/batch", json={"jobs": jobs})).json()["items"]
    assert [item["status"] for item in items] == [404, 202]
    kept = await tenant.get(f"/v1/jobs/{items[1]['id']}/payload")
    assert kept.json() == BIG


async def test_payload_and_upload_together_are_refused(tenant: httpx2.AsyncClient) -> None:
    made = (await tenant.post("/v1/uploads")).json()
    job = {"type": "x", "payload": {"n": 1}, "payload_upload": made["id"]}
    problem(await tenant.post("/v1/jobs", json=job), 422, "INVALID_REQUEST", "/payload_upload")


async def test_the_same_key_and_the_same_large_payload_are_the_same_job(house: House) -> None:
    """Each sending uploads anew, under another name."""
    _, key = house.new_tenant()
    client = Client(ClientSettings(url=house.url, api_key=key))
    sent = [json.dumps({"x": letter * (5 * MB)}).encode() for letter in "yz"]

    def submission(payload: bytes) -> Submission:
        return Submission(None, JobRequest(type="t", payload=Raw(payload)), "order-17")  # type: ignore[arg-type]  # the client does not look at the job type

    first = await client.submit(submission(sent[0]))
    assert await client.submit(submission(sent[0])) == first
    with pytest.raises(Exception, match="another body"):
        await client.submit(submission(sent[1]))
    await client.aclose()


async def post_until_let_in(tenant: httpx2.AsyncClient, job: Any) -> httpx2.Response:
    """The same job, whoever made it: by its key."""
    async with asyncio.timeout(30):
        while True:
            reply = await tenant.post("/v1/jobs", json=job, headers={"idempotency-key": "once"})
            if reply.status_code != 429:
                return reply
            await asyncio.sleep(0.1)


async def test_refused_jobs_leave_no_objects(house: House) -> None:
    name, key = house.new_tenant(rate_per_second=1, burst=5)
    jobs = {"type": "t", "payload": BIG}
    async with house.caller(key) as tenant:
        replies = [await tenant.post("/v1/jobs", json=jobs) for _ in range(30)]
        assert {reply.status_code for reply in replies} == {202, 429}
        replies += [await post_until_let_in(tenant, jobs) for _ in range(2)]
        assert replies[-1].headers["idempotent-replayed"] == "true"
    accepted = {reply.json()["id"] for reply in replies if reply.status_code == 202}
    number = house.platform.directory.id_of(name)
    kept = stored(house, f"payloads/*/{number}/*/payload")
    assert {path.parent.name for path in kept} == accepted
