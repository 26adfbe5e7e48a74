"""Callers of a program share calls to a real server: whatever is lost, each has its job, once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tests.acceptance.proxy import Proxy
from tests.api.house import House

from fairway import App, Handle, Job
from fairway.core.errors import FairwayError, InvalidRequest, LimitReached

Note = Job[[int], None]
CALLERS = 40


@asynccontextmanager
async def noting(url: str, key: str, patience: str = "60s") -> AsyncIterator[Note]:
    app = App("notes", url=url, api_key=key, patience=patience)

    @app.job(name="note")
    def note(n: int) -> None: ...

    yield note
    await app.aclose()


@asynccontextmanager
async def lossy(house: House) -> AsyncIterator[Proxy]:
    proxy = Proxy(house.url, seed=5)
    await proxy.open()
    yield proxy
    proxy.close()


async def hand_in(note: Note, numbers: Sequence[int]) -> list[Any]:
    """All at once, every third one by a thread: an answer or an error for each."""
    calls = (
        asyncio.to_thread(note.enqueue, n) if n % 3 == 0 else note.aenqueue(n) for n in numbers
    )
    return await asyncio.gather(*calls, return_exceptions=True)


async def on_disk(house: House, key: str) -> dict[str, int]:
    """The tenant's jobs as its server has them: the number in each, by id."""
    async with house.caller(key) as tenant:
        page = (await tenant.get("/v1/jobs?limit=200")).json()
        views = await asyncio.gather(*(tenant.get(f"/v1/jobs/{j['id']}") for j in page["jobs"]))
    return {view.json()["id"]: view.json()["payload"]["n"] for view in views}


async def test_lost_replies_and_requests(house: House) -> None:
    _, key = house.new_tenant()
    async with lossy(house) as proxy, noting(proxy.url, key) as note:
        proxy.drop_reply, proxy.drop_request = 0.4, 0.2
        first = await hand_in(note, range(CALLERS))
        answers = first + await hand_in(note, range(CALLERS, 2 * CALLERS))
    assert proxy.fates["reply lost"], "nothing was lost: the test proved nothing"
    handles = [answer for answer in answers if isinstance(answer, Handle)]
    assert {handle.id: n for n, handle in enumerate(handles)} == await on_disk(house, key)
    assert len(handles) == 2 * CALLERS


async def test_a_full_queue_lets_in_as_many_as_it_has_room_for(house: House) -> None:
    _, key = house.new_tenant(depth_limit=13)
    async with noting(house.url, key, patience="1s") as note:
        answers = await hand_in(note, range(CALLERS))
    kinds = Counter(type(answer) for answer in answers)
    assert {*kinds} == {Handle, LimitReached}
    assert kinds[Handle] >= 13  # or more: calls at the same moment see the same room
    accepted = {a.id: n for n, a in enumerate(answers) if isinstance(a, Handle)}
    assert accepted == await on_disk(house, key)


async def test_a_rate_that_is_used_up_is_waited_for(house: House) -> None:
    _, key = house.new_tenant(rate_per_second=20, burst=5)
    async with noting(house.url, key) as note:
        answers = await hand_in(note, range(CALLERS))
    accepted = {a.id: n for n, a in enumerate(answers) if isinstance(a, Handle)}
    assert len(accepted) == CALLERS, answers
    assert accepted == await on_disk(house, key)


async def test_a_bad_job_among_good_ones(house: House) -> None:
    _, key = house.new_tenant()
    async with noting(house.url, key) as note:
        bad = note.options(pool="nowhere")
        calls = [(bad if n == 7 else note).aenqueue(n) for n in range(CALLERS)]
        answers: list[Any] = await asyncio.gather(*calls, return_exceptions=True)
    refused = {n: a for n, a in enumerate(answers) if isinstance(a, FairwayError)}
    assert [*refused] == [7]
    assert isinstance(refused[7], InvalidRequest)
    assert refused[7].code == "UNKNOWN_POOL"
    assert len(await on_disk(house, key)) == CALLERS - 1


async def test_one_key_by_many_callers_is_one_job(house: House) -> None:
    _, key = house.new_tenant()
    async with noting(house.url, key) as note:
        once = note.options(idempotency_key="once")
        handles = await asyncio.gather(*(once.aenqueue(1) for _ in range(CALLERS)))
        other: Any = await asyncio.gather(
            once.aenqueue(2), note.aenqueue(3), return_exceptions=True
        )
    assert len({handle.id for handle in handles}) == 1
    assert other[0].code == "IDEMPOTENCY_KEY_REUSED"
    assert sorted((await on_disk(house, key)).values()) == [1, 3]
