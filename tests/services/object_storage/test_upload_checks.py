"""Looks at uploads: once for what lies there, few at a time, and nobody's results wait for them."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.services.platform_room import QUICK, Hand, add_tenant, new, owner_on, submit, until

from fairway.core.errors import Gone, InvalidRequest
from fairway.core.ids import TenantId
from fairway.core.object_storage.object_names import day_of
from fairway.core.object_storage.reference import referred
from fairway.core.object_storage.upload_facts import NO_FIT
from fairway.runtime.settings import replaced
from fairway.services.object_storage.upload_checks import LOOKS_MAX, TENANT_LOOKS_MAX, Look
from fairway.services.object_storage.uploads import Address
from fairway.services.platform import Platform
from fairway.services.submit.submission_group import NewJob

INLINE = 1000
SECONDS = 20.0  # on a busy machine, and well below what whoever finds no place waits


@pytest.fixture
async def platform(database_url: str, tmp_path: Path) -> AsyncIterator[Platform]:
    settings = replaced(QUICK, storage_url=f"file://{tmp_path}/objects")
    async with owner_on(database_url, settings) as platform:
        yield platform


class Eye:
    """Looks at what was uploaded, and remembers that it did."""

    def __init__(self, tenant: int, rule: str = "") -> None:
        self.tenant, self.rule = tenant, rule
        self.looked_at: list[bytes] = []
        self.charged: list[int] = []
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.flaw: InvalidRequest | None = None

    async def _whole(self, payload: bytes) -> None:
        self.looked_at.append(payload)
        await self.is_open.wait()
        if self.flaw is not None:
            raise self.flaw

    async def _through(self, pieces: AsyncIterator[bytes]) -> None:
        await self._whole(b"".join([piece async for piece in pieces]))

    def look(self, job: NewJob) -> Look:
        return Look(self._whole, self._through, self.charged.append, self.rule)

    async def offload_large_payloads(self, platform: Platform, *uploads: str) -> list[object]:
        jobs = [new(upload=upload) for upload in uploads]
        return list(
            await platform.large_data.payloads.offload_large_payloads(
                TenantId(self.tenant), jobs, INLINE, self.look
            )
        )


def upload_id(platform: Platform, number: int) -> str:
    return f"{day_of(platform.store_clock.now())}.{number:032x}"


def body_of(tenant: int, upload: str) -> str:
    return f"uploads/{upload[:10]}/{tenant}/{upload}/body"


async def uploaded(platform: Platform, tenant: int, number: int, body: bytes = b"{}") -> str:
    """As a bucket takes it: without us."""
    upload = upload_id(platform, number)
    await platform.large_data.objects.put(body_of(tenant, upload), body)
    return upload


async def test_neither_results_nor_payloads_wait_for_looks(platform: Platform) -> None:
    tenant = await add_tenant(platform)
    await submit(platform, tenant)
    (lease,) = await Hand(platform).take()
    eyes = [Eye(tenant.id + 1 + number) for number in range(LOOKS_MAX)]
    looks = []
    for eye in eyes:
        eye.is_open.clear()
        uploads = [await uploaded(platform, eye.tenant, number) for number in range(5)]
        looks.append(asyncio.create_task(eye.offload_large_payloads(platform, *uploads)))
    await until(lambda: sum(len(eye.looked_at) for eye in eyes) == LOOKS_MAX, SECONDS)
    async with asyncio.timeout(SECONDS):
        await platform.large_data.payloads.keep_result(lease, b"x" * 2 * INLINE)
        job = new(payload=b'{"x":"%b"}' % (b"x" * INLINE))
        (kept,) = await platform.large_data.payloads.offload_large_payloads(
            tenant.id, [job], INLINE, eyes[0].look
        )
    assert isinstance(kept, NewJob)
    assert {len(eye.looked_at) for eye in eyes} == {0, TENANT_LOOKS_MAX}, "none has them all"
    for eye in eyes:
        eye.is_open.set()
    answers = [answer for look in looks for answer in await look]
    assert Counter(map(type, answers)) == {NewJob: 5 * len(eyes)}, "the rest waited"


async def test_an_upload_is_looked_at_once_however_many_jobs_name_it(platform: Platform) -> None:
    eye = Eye(7)
    upload = await uploaded(platform, 7, 1)
    answers = await eye.offload_large_payloads(platform, *[upload] * 5)
    answers += await eye.offload_large_payloads(platform, upload)
    assert eye.looked_at == [b"{}"]
    assert eye.charged == []
    digests = {facts.sha256 for one in answers if (facts := referred(one.payload))}  # type: ignore[attr-defined]
    assert digests == {hashlib.sha256(b"{}").digest()}


async def test_another_schema_is_another_look_and_that_is_charged(platform: Platform) -> None:
    eye, other = Eye(7, "one schema"), Eye(7, "another")
    upload = await uploaded(platform, 7, 1)
    for _ in range(2):
        await eye.offload_large_payloads(platform, upload)
        await other.offload_large_payloads(platform, upload)
        await Eye(7).offload_large_payloads(platform, upload)
    assert (len(eye.looked_at), eye.charged) == (1, [])
    assert (len(other.looked_at), other.charged) == (1, [2])


async def test_what_does_not_fit_one_type_may_fit_another(platform: Platform) -> None:
    picky, other = Eye(7, "one schema"), Eye(7)
    picky.flaw = InvalidRequest("no", code=NO_FIT, field="/payload/x")
    upload = await uploaded(platform, 7, 1)
    (refused,) = await picky.offload_large_payloads(platform, upload)
    assert refused is picky.flaw
    (taken,) = await other.offload_large_payloads(platform, upload)
    assert isinstance(taken, NewJob)


@pytest.mark.parametrize("filler", [b"", b"x" * (9 << 20)], ids=["small", "large"])
async def test_another_body_of_the_same_size_is_another_upload(
    platform: Platform, filler: bytes
) -> None:
    """Good, then bad, then good: each time what lies there now is looked at, and paid for."""
    good, bad = b'{"x":"%b"}' % filler, b'{"x":"%b"]' % filler
    for number, bodies in enumerate([(good, bad, good), (bad, good, bad)]):
        eye = Eye(7)
        for turn, body in enumerate(bodies):
            upload = await uploaded(platform, 7, number, body)
            eye.flaw = InvalidRequest("no") if body == bad else None
            for _ in range(2):
                (answer,) = await eye.offload_large_payloads(platform, upload)
                assert isinstance(answer, InvalidRequest if body == bad else NewJob)
            assert (len(eye.looked_at), len(eye.charged)) == (turn + 1, turn)


async def test_what_changes_under_our_eyes_is_not_taken(platform: Platform) -> None:
    eye = Eye(7)
    eye.is_open.clear()
    upload = await uploaded(platform, 7, 1, b'{"n":1}')
    looking = asyncio.create_task(eye.offload_large_payloads(platform, upload))
    await until(lambda: len(eye.looked_at) == 1, SECONDS)
    await uploaded(platform, 7, 1, b'{"n":2}')
    eye.is_open.set()
    (answer,) = await looking
    assert getattr(answer, "code", "") == "CONFLICT"
    assert eye.charged == [7], "else it could be had again and again"
    (taken,) = await eye.offload_large_payloads(platform, upload)
    assert isinstance(taken, NewJob)


async def test_what_came_by_way_of_us_and_is_another_now_is_damaged(platform: Platform) -> None:
    made = await platform.large_data.uploads.new(TenantId(7), "key", "http://here")

    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"n":1}'

    query = dict(pair.split("=") for pair in made.url.partition("?")[2].split("&"))
    expires, signature = int(query["expires"]), query["signature"]
    address = Address(TenantId(7), "key", made.id, expires, signature)
    await platform.large_data.uploads.take(address, 7, pieces())
    path = Path(platform.large_data.objects.address, body_of(7, made.id))
    replace_with(path, b'{"n":2}')
    eye = Eye(7)
    (answer,) = await eye.offload_large_payloads(platform, made.id)
    assert isinstance(answer, Gone)
    assert answer.code == "OBJECT_DAMAGED"
    replace_with(path, b'{"n":1}')
    (taken,) = await eye.offload_large_payloads(platform, made.id)
    assert isinstance(taken, NewJob)


async def test_a_batch_that_cannot_be_kept_leaves_nothing(platform: Platform) -> None:
    eye = Eye(7)
    good, bad = await uploaded(platform, 7, 1), await uploaded(platform, 7, 2, b"[]")

    async def fails(payload: bytes) -> None:
        if payload == b"[]":
            await until(lambda: len(payloads(platform)) == 1, SECONDS)
            raise OSError("of whatever kind")

    def look(job: NewJob) -> Look:
        return eye.look(job)._replace(whole=fails)

    jobs = [new(upload=good), new(upload=bad)]
    with pytest.raises(OSError, match="of whatever kind"):
        await platform.large_data.payloads.offload_large_payloads(TenantId(7), jobs, INLINE, look)
    assert payloads(platform) == []


def replace_with(path: Path, body: bytes) -> None:
    """As who mends a disk does."""
    beside = path.with_name("mended")
    beside.write_bytes(body)
    os.rename(beside, path)


def payloads(platform: Platform) -> list[Path]:
    return list(Path(platform.large_data.objects.address).glob("payloads/*/7/*/payload"))
