"""The event log as server-sent events: in order, from where one was, and told what is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest
from tests.api.events.world import Talker, talker_in
from tests.api.house import House, problem
from tests.api.test_revocation import within_five_seconds

from fairway.sdk.http.sse import Event, EventParser

SECONDS = 30.0


@pytest.fixture
async def talker(house: House) -> AsyncIterator[Talker]:
    async with talker_in(house) as talker:
        yield talker


class Stream:
    def __init__(self, reply: httpx2.Response) -> None:
        self._chunks = reply.aiter_text()
        self._found: list[Event] = []
        self.parser = EventParser()

    async def next(self, count: int = 1) -> list[Event]:
        async with asyncio.timeout(SECONDS):
            while len(self._found) < count:
                self._found += self.parser.feed(await anext(self._chunks))
        taken, self._found = self._found[:count], self._found[count:]
        return taken

    async def begun(self) -> int:
        """The first thing that a stream says is where it begins."""
        async with asyncio.timeout(SECONDS):
            while not self.parser.last_id:
                self._found += self.parser.feed(await anext(self._chunks))
        return int(self.parser.last_id)


async def test_events_come_in_order_from_now_on(talker: Talker) -> None:
    await talker.make(3)
    await talker.until(3)
    async with talker.caller() as caller, caller.stream("GET", "/v1/events/stream") as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        stream = Stream(reply)
        assert await stream.begun() == 3
        jobs = await talker.make(4)
        found = await stream.next(4)
    assert [event.id for event in found] == ["4", "5", "6", "7"]
    assert {event.kind for event in found} == {"job.accepted"}
    assert [event.data["position"] for event in found] == [4, 5, 6, 7]
    assert {event.data["job"] for event in found} == set(jobs)


@pytest.mark.parametrize("by", ["after", "Last-Event-ID", "both"])
async def test_a_stream_goes_on_where_it_was(talker: Talker, by: str) -> None:
    await talker.make(5)
    await talker.until(5)
    query = {"after": {"after": "3"}, "Last-Event-ID": {}, "both": {"after": "1"}}[by]
    headers = {} if by == "after" else {"last-event-id": "3"}
    async with (
        talker.caller() as caller,
        caller.stream("GET", "/v1/events/stream", params=query, headers=headers) as reply,
    ):
        stream = Stream(reply)
        assert [event.id for event in await stream.next(2)] == ["4", "5"]


async def test_a_filter_moves_the_position_on(talker: Talker) -> None:
    """Who wants little must not have to read all of it again."""
    await talker.make(2, "other.type")
    (job,) = await talker.make(1)
    await talker.until(3)
    async with talker.caller() as caller:
        for query in ({"type": talker.type}, {"job": job}, {"kind": "job.*", "job": job}):
            asked = {"after": "0", **query}
            async with caller.stream("GET", "/v1/events/stream", params=asked) as reply:
                (found,) = await Stream(reply).next()
                assert (found.id, found.data["job"]) == ("3", job)


async def test_what_was_deleted_is_told_as_a_gap(house: House, talker: Talker) -> None:
    await talker.make(3)
    await talker.until(3)
    number = house.platform.directory.tenant_ids[talker.name]

    async def delete(platform: object) -> None:
        async with house.platform.database.upkeep() as connection:
            await connection.execute("DELETE FROM event_log WHERE tenant = $1", number)

    house.inside(delete)
    await talker.make(1)
    await talker.until(4)
    async with (
        talker.caller() as caller,
        caller.stream("GET", "/v1/events/stream", params={"after": "1"}) as reply,
    ):
        gap, event = await Stream(reply).next(2)
    assert (gap.kind, gap.id, gap.data) == ("gap", "3", {"from": 2, "to": 3})
    assert (event.kind, event.id) == ("job.accepted", "4")


async def test_a_position_that_there_is_not_is_refused(talker: Talker) -> None:
    async with talker.caller() as caller:
        ahead = await caller.get("/v1/events/stream", params={"after": "7"})
        assert "the newest is 0" in problem(ahead, 400, "INVALID_CURSOR")["detail"]
        for wrong in ("-1", "x", "9" * 19, "١"):
            reply = await caller.get("/v1/events/stream", params={"after": wrong})
            problem(reply, 422, "INVALID_REQUEST", "after")
        reply = await caller.get("/v1/events/stream", params={"kind": "job.deed"})
        assert "job.dead" in problem(reply, 422, "INVALID_REQUEST", "kind")["detail"]
        head = await caller.head("/v1/events/stream")
        assert head.headers["content-type"].startswith("text/event-stream")


async def test_nobody_hears_of_anothers_jobs(house: House, talker: Talker) -> None:
    everything = ("GET", "/v1/events/stream")
    async with (
        talker_in(house) as other,
        other.caller() as caller,
        caller.stream(*everything, params={"after": "0"}) as reply,
    ):
        stream = Stream(reply)
        await talker.make(2)
        await talker.until(2)
        (mine,) = await other.make(1)
        assert [event.data["job"] for event in await stream.next()] == [mine]


async def test_a_stream_of_events_ends_with_its_key(
    house: House, talker: Talker, operator: httpx2.AsyncClient
) -> None:
    async with talker.caller() as caller:
        async with caller.stream("GET", "/v1/events/stream") as reply:
            stream = Stream(reply)
            await stream.begun()
            gone = await operator.delete(f"/v1/keys/{talker.key.split('_')[2]}")
            assert gone.status_code == 204
            async with within_five_seconds():
                with pytest.raises(StopAsyncIteration):
                    await stream.next()
        problem(await caller.get("/v1/events/stream"), 401, "UNAUTHENTICATED")


# -- requests that wait --------------------------------------------------------------------------


async def test_a_question_for_events_waits_for_them(talker: Talker) -> None:
    async with talker.caller() as caller:
        asked = {"after": "0", "wait": "30"}
        waiting = asyncio.create_task(caller.get("/v1/events", params=asked))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        (job,) = await talker.make(1)
        found = (await waiting).json()
        assert [event["job"] for event in found["events"]] == [job]
        assert found["cursor"] == 1
        asked = {"after": "1", "wait": "0"}
        assert (await caller.get("/v1/events", params=asked)).json()["cursor"] == 1
        reply = await caller.get("/v1/events", params={"wait": "61"})
        problem(reply, 422, "INVALID_REQUEST", "wait")


async def test_a_wait_goes_on_past_what_its_filter_leaves_out(talker: Talker) -> None:
    async with talker.caller() as caller:
        asked = {"after": "0", "wait": "30", "type": talker.type}
        waiting = asyncio.create_task(caller.get("/v1/events", params=asked))
        await talker.make(2, "other.type")
        await talker.until(2)
        assert not waiting.done()
        await talker.make(1)
        found = (await waiting).json()
    assert [event["position"] for event in found["events"]] == [3]
    assert found["cursor"] == 3
