"""Acts on many jobs by the SDK, against a real server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.api.house import House

from fairway import App, Conflict, InvalidRequest, NotFound


async def test_many_are_counted_cancelled_followed_and_aborted(house: House) -> None:
    _, key = house.new_tenant()
    app = App("shop", url=house.url, api_key=key)

    @app.job(name="bulk.sdk")
    def work(n: int) -> None: ...

    await work.aenqueue_many([(n,) for n in range(30)])
    soon = datetime.now(UTC) + timedelta(hours=1)
    assert (await app.bulk.acount("cancel", type="bulk.sdk", until=soon)).matched == 30
    assert (
        await app.bulk.acount("cancel", type="bulk.sdk", until=soon - timedelta(2))
    ).matched == 0
    with pytest.raises(InvalidRequest, match="all"):
        await app.bulk.astart("cancel")
    slow = await app.bulk.astart("cancel", type="bulk.sdk", per_second=1)
    assert (await app.bulk.aabort(slow.id)).state == "aborted"
    with pytest.raises(Conflict):
        await app.bulk.aabort(slow.id)
    begun = await app.bulk.astart("cancel", type="bulk.sdk", state="queued")
    seen = [one async for one in app.bulk.afollow(begun.id)]
    assert (seen[-1].state, seen[-1].done) == ("done", 30 - (await app.bulk.aget(slow.id)).done)
    assert [one.id for one in await app.bulk.alatest()] == [begun.id, slow.id]
    assert seen[-1].filter.type == "bulk.sdk"
    await app.aclose()


def test_the_same_from_a_thread(house: House) -> None:
    _, key = house.new_tenant()
    bulk = App("shop", url=house.url, api_key=key).bulk
    assert bulk.count("replay", fingerprint="0" * 16).matched == 0
    begun = bulk.start("replay", all=True, payload={"n": 1})
    *_, last = bulk.follow(begun.id)
    assert (last.state, last.done) == ("done", 0)
    assert [one.id for one in bulk.latest()] == [begun.id]
    with pytest.raises(Conflict):
        bulk.abort(begun.id)
    with pytest.raises(NotFound):
        bulk.get("nobody's")
    with pytest.raises(TypeError, match="did you mean type"):
        bulk.count("cancel", types="a")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="zone"):
        bulk.count("cancel", since=datetime(2026, 1, 1))  # noqa: DTZ001
