"""The client against a real server on the loopback: it asks again, but accepts once."""

from __future__ import annotations

import asyncio
import json
import pickle
import time
from contextlib import aclosing

import msgspec
import pytest
from tests.sdk.tiny_server import API_KEY, Reply, TinyServer, problem

from fairway import App, BatchRefused, Handle, Job, JobFailed, StillRunning, Unreachable
from fairway.core.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    LimitReached,
    NotFound,
    Unavailable,
)
from fairway.sdk.client import handle as handle_module


class Score(msgspec.Struct):
    value: float
    why: str


@pytest.fixture
def score(app: App) -> Job[[str, str], Score]:
    @app.job(pool="medium", timeout="2m", priority=3)
    async def score(cv_id: str, rubric: str) -> Score:
        return Score(1.0, cv_id + rubric)

    return score


ScoreJob = Job[[str, str], Score]


async def test_a_submission_says_all_that_the_job_declares(
    score: ScoreJob, server: TinyServer
) -> None:
    handle = await score.aenqueue("cv1", "r1")
    request = server.requests[0]
    assert request.json == {
        "type": "score",
        "payload": {"cv_id": "cv1", "rubric": "r1"},
        "pool": "medium",
        "priority": 3,
        "timeout_seconds": 120.0,
    }
    assert request.headers["authorization"] == f"Bearer {API_KEY}"
    assert len(request.headers["idempotency-key"]) == 32
    assert handle.id in server.jobs


async def test_options_speak_for_one_job(score: ScoreJob, server: TinyServer) -> None:
    chosen = score.options(priority=0, pool="long", timeout=5, idempotency_key="cv1")
    await chosen.aenqueue("cv1", "r1")
    sent = server.requests[0].json
    assert (sent["priority"], sent["pool"], sent["timeout_seconds"]) == (0, "long", 5.0)
    assert server.requests[0].headers["idempotency-key"] == "cv1"


async def test_a_lost_reply_is_asked_for_again_with_the_same_key(
    score: ScoreJob, server: TinyServer
) -> None:
    server.moods.append("drop")
    handle = await score.aenqueue("cv1", "r1")
    keys = [request.headers["idempotency-key"] for request in server.requests]
    assert len(keys) == 2
    assert keys[0] == keys[1]
    assert list(server.jobs) == [handle.id]


@pytest.mark.parametrize("status", [429, 503, 502, 504, 409])
async def test_not_now_is_tried_again(score: ScoreJob, server: TinyServer, status: int) -> None:
    server.moods.extend([Reply(status, problem("OVERLOADED", status)), Reply(status)])
    await score.aenqueue("cv1", "r1")
    assert len(server.requests) == 3


async def test_one_that_is_not_unique_is_told_at_once(score: ScoreJob, server: TinyServer) -> None:
    server.moods.append(Reply(409, problem("NOT_UNIQUE", 409)))
    with pytest.raises(Conflict):
        await score.aenqueue("cv1", "r1")
    assert len(server.requests) == 1


async def test_a_large_payload_is_put_again(score: ScoreJob, server: TinyServer) -> None:
    server.moods.extend(["", Reply(503, problem("STORAGE_UNAVAILABLE", 503)), "drop"])
    await score.aenqueue("x" * (5 << 20), "r1")
    assert server.paths() == ["POST /v1/uploads", *["PUT /uploads/u1"] * 3, "POST /v1/jobs"]
    assert len(server.uploads["/uploads/u1"]) > 5 << 20


async def test_a_large_payload_that_is_refused_is_not(score: ScoreJob, server: TinyServer) -> None:
    server.moods.extend(["", Reply(413)])
    with pytest.raises(InvalidRequest, match="413"):
        await score.aenqueue("x" * (5 << 20), "r1")
    assert len(server.requests) == 2


async def test_retry_after_is_honoured(score: ScoreJob, server: TinyServer) -> None:
    server.moods.append(Reply(503, problem("OVERLOADED", 503), {"Retry-After": "0.4"}))
    begun = time.monotonic()
    await score.aenqueue("cv1", "r1")
    assert time.monotonic() - begun >= 0.4


async def test_a_retry_after_beyond_patience_is_not_waited_for(
    score: ScoreJob, server: TinyServer
) -> None:
    limit = problem("TENANT_RATE_LIMIT_EXCEEDED", 429, "600 a minute")
    server.moods.append(Reply(429, limit, {"Retry-After": "60"}))
    begun = time.monotonic()
    with pytest.raises(LimitReached, match="600 a minute") as caught:
        await score.aenqueue("cv1", "r1")
    assert time.monotonic() - begun < 20
    assert caught.value.retry_after_seconds == 60
    assert caught.value.code == "TENANT_RATE_LIMIT_EXCEEDED"


async def test_patience_ends(server: TinyServer) -> None:
    app = App("scoring", url=server.url, api_key=API_KEY, patience="500ms")

    @app.job
    def noop() -> None: ...

    server.moods.extend([Reply(503, problem("OVERLOADED", 503, "busy"))] * 1000)
    with pytest.raises(Unavailable, match="busy"):
        await noop.aenqueue()
    await app.aclose()


async def test_a_server_that_is_not_there_is_named() -> None:
    app = App("x", url="http://127.0.0.1:9", patience="300ms")

    @app.job()
    def noop() -> None: ...

    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:9 gave no answer.*is the server running"):
        await noop.aenqueue()
    await app.aclose()


async def test_problems_become_errors(score: ScoreJob, server: TinyServer) -> None:
    pointers = [{"pointer": "/pool", "detail": "no such pool"}]
    server.moods.append(Reply(422, problem("UNKNOWN_POOL", 422, "no such pool", errors=pointers)))
    with pytest.raises(InvalidRequest, match="no such pool") as caught:
        await score.aenqueue("cv1", "r1")
    assert (caught.value.code, caught.value.field) == ("UNKNOWN_POOL", "/pool")
    assert len(server.requests) == 1


async def test_an_error_without_a_problem_is_still_an_error(
    score: ScoreJob, server: TinyServer
) -> None:
    server.moods.append(Reply(400, ["not", "a", "problem"]))
    with pytest.raises(InvalidRequest, match="HTTP 400"):
        await score.aenqueue("cv1", "r1")


async def test_a_wrong_key_is_forbidden(server: TinyServer) -> None:
    app = App("x", url=server.url, api_key="wrong")
    with pytest.raises(Forbidden):
        await Handle.from_id(app, "none").astatus()
    await app.aclose()


async def test_a_key_that_is_missing_is_told_as_the_setting(
    server: TinyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FAIRWAY_API_KEY", raising=False)
    app = App("x", url=server.url)

    @app.job(name="any")
    def nothing() -> None: ...

    with pytest.raises(Forbidden, match="set FAIRWAY_API_KEY"):
        await Handle.from_id(app, "none").astatus()
    with pytest.raises(Forbidden, match="set FAIRWAY_API_KEY"):
        await nothing.aenqueue()
    await app.aclose()


async def test_an_unknown_job_is_not_found(app: App) -> None:
    with pytest.raises(NotFound):
        await Handle.from_id(app, "none").astatus()
    await app.aclose()


async def test_connections_are_reused(score: ScoreJob, server: TinyServer) -> None:
    for _ in range(5):
        await score.aenqueue("cv1", "r1")
    assert server.connections == 1


# -- results ---------------------------------------------------------------------------------------


async def test_a_result_is_waited_for_and_has_its_type(score: ScoreJob, server: TinyServer) -> None:
    handle = await score.aenqueue("cv1", "r1")
    server.finish(handle.id, result={"value": 0.5, "why": "because"})
    assert await handle.aresult(timeout=5) == Score(0.5, "because")
    assert server.requests[-1].headers["prefer"] == "wait=5"


async def test_a_wait_in_less_than_seconds_ends_in_time(
    score: ScoreJob, server: TinyServer
) -> None:
    handle = await score.aenqueue("cv1", "r1")
    begun = time.monotonic()
    with pytest.raises(StillRunning, match=r"is queued after 0\.3 s") as caught:
        await handle.aresult(timeout="300ms")
    assert 0.3 <= time.monotonic() - begun < 20
    assert isinstance(caught.value, TimeoutError)


async def test_a_wait_that_is_answered_at_once_is_polled_with_growing_pauses(
    score: ScoreJob, server: TinyServer
) -> None:
    handle = await score.aenqueue("cv1", "r1")
    server.waits = False  # as a server without a place for one more
    with pytest.raises(StillRunning, match=r"is queued after 1\.9 s"):
        await handle.aresult(timeout=1.9)
    asked = server.requests[1:]
    assert 3 <= len(asked) <= 5
    assert all(one.headers.get("prefer", "wait=0") in ("wait=0", "wait=1") for one in asked)


@pytest.mark.parametrize("status", [429, 503])
async def test_who_waits_hears_at_the_time_out_that_the_job_still_runs(
    score: ScoreJob, server: TinyServer, status: int
) -> None:
    handle = await score.aenqueue("cv1", "r1")
    busy = Reply(status, problem("OVERLOADED", status, "Not now."), {"retry-after": "60"})
    server.moods.extend([busy] * 50)
    begun = time.monotonic()
    with pytest.raises(StillRunning):
        await handle.aresult(timeout=0.5)
    assert time.monotonic() - begun < 30, "a server's Retry-After is not the caller's time-out"


@pytest.mark.parametrize("timeout", [2.9, None])
@pytest.mark.parametrize("status", [503, 502])
async def test_a_server_that_is_away_for_longer_than_our_patience_is_asked_again(
    server: TinyServer, status: int, timeout: float | None
) -> None:
    """Also by one that waits for as long as it takes: a server that answers is there."""
    async with aclosing(App("scoring", url=server.url, api_key=API_KEY, patience="50ms")) as app:

        @app.job
        def score(cv_id: str) -> int:
            return 1

        handle = await score.aenqueue("cv1")
        away = problem("TENANT_MOVING", status) if status == 503 else None  # a proxy's is no JSON
        server.moods.extend([Reply(status, away, {"retry-after": "4"})])
        server.finish(handle.id, result=1)
        assert await handle.aresult(timeout=timeout) == 1


async def test_a_large_result_is_asked_for_again_until_the_time_out(server: TinyServer) -> None:
    async with aclosing(App("scoring", url=server.url, api_key=API_KEY, patience="50ms")) as app:

        @app.job
        def score(cv_id: str) -> int:
            return 1

        handle = await score.aenqueue("cv1")
        server.finish(handle.id, result=None, result_bytes=1 << 20)
        moving = Reply(503, problem("TENANT_MOVING", 503), {"retry-after": "4"})
        server.moods.extend(["", moving])
        with pytest.raises(NotFound):  # this server keeps no large results; it was asked again
            await handle.aresult(timeout=2.9)


async def test_who_waits_without_end_hears_that_nobody_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handle_module, "WAIT_SECONDS_MAX", 0.1)  # of one question
    async with aclosing(App("x", url="http://127.0.0.1:9", patience="50ms")) as app:
        with pytest.raises(Unreachable):
            await Handle.from_id(app, "00000000-0000-7000-8000-000000000000").aresult()


async def test_a_dead_job_raises_what_killed_it(score: ScoreJob, server: TinyServer) -> None:
    handle = await score.aenqueue("cv1", "r1")
    server.finish(handle.id, "dead", error={"type": "ValueError", "message": "no such rubric"})
    with pytest.raises(JobFailed, match=r"dead after 1 attempt \(ValueError: no such rubric"):
        await handle.aresult()


async def test_cancel_and_status(score: ScoreJob, server: TinyServer) -> None:
    handle = await score.aenqueue("cv1", "r1")
    assert (await handle.astatus()).state == "queued"
    assert (await handle.acancel()).state == "cancelled"
    assert score.handle(handle.id).id == handle.id


async def test_a_status_is_made_of_plain_values(score: ScoreJob, server: TinyServer) -> None:
    """A web handler returns it or a part of it; raw JSON text would be an error there."""
    handle = await score.aenqueue("cv1", "r1")
    first = await handle.astatus()
    assert first.payload == {"cv_id": "cv1", "rubric": "r1"}
    assert (first.result, first.progress, first.error, first.history) == (None, None, None, [])
    server.finish(handle.id, result={"points": [1, 2]})
    last = await handle.astatus()
    assert last.result == {"points": [1, 2]}
    assert repr(last).startswith("JobStatus(id="), "who prints it looks for that first"
    assert "Raw" not in repr(last)


async def test_what_ended_a_job_can_be_read_and_carried(
    score: ScoreJob, server: TinyServer
) -> None:
    handle = await score.aenqueue("cv1", "r1")
    server.finish(handle.id, "dead", error={"type": "ValueError", "message": "no such rubric"})
    with pytest.raises(JobFailed) as caught:
        await handle.aresult()
    assert caught.value.view.error == caught.value.error
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301  # our own bytes
    assert (again.error, again.view) == (caught.value.error, caught.value.view)


async def test_a_dead_job_is_replayed(score: ScoreJob, server: TinyServer) -> None:
    handle = await score.aenqueue("cv1", "r1")
    with pytest.raises(NotFound):
        await handle.areplay()
    server.finish(handle.id, "dead")
    assert (await handle.areplay()).state == "queued"


# -- batches ---------------------------------------------------------------------------------------


async def test_many_keep_their_order(score: ScoreJob, server: TinyServer) -> None:
    handles = await score.aenqueue_many([("a", "r"), {"cv_id": "b", "rubric": "r"}])
    assert [server.jobs[handle.id]["payload"]["cv_id"] for handle in handles] == ["a", "b"]
    assert server.paths() == ["POST /v1/jobs/batch"]


async def test_more_than_a_batch_is_split(
    score: ScoreJob, server: TinyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairway.sdk.client.batch_calls.SLICE_JOBS_MAX", 10)
    handles = await score.aenqueue_many(("a", str(n)) for n in range(41))
    rubrics = [server.jobs[handle.id]["payload"]["rubric"] for handle in handles]
    assert rubrics == [str(n) for n in range(41)]
    sizes = [len(request.json["jobs"]) for request in server.requests]
    assert sorted(sizes) == [1, *[10] * 4]


async def test_a_batch_too_large_for_the_server_is_halved(
    score: ScoreJob, server: TinyServer
) -> None:
    server.batch_max = 3
    handles = await score.aenqueue_many([("a", str(n)) for n in range(5)])
    rubrics = [server.jobs[handle.id]["payload"]["rubric"] for handle in handles]
    assert rubrics == ["0", "1", "2", "3", "4"]


async def test_a_batch_with_too_many_values_is_halved(score: ScoreJob, server: TinyServer) -> None:
    server.batch_max, server.batch_code = 3, "TOO_MANY_VALUES"
    handles = await score.aenqueue_many([("a", str(n)) for n in range(5)])
    rubrics = [server.jobs[handle.id]["payload"]["rubric"] for handle in handles]
    assert rubrics == ["0", "1", "2", "3", "4"]


async def test_a_payload_with_too_many_values_is_uploaded(
    score: ScoreJob, server: TinyServer
) -> None:
    server.moods.append(Reply(413, problem("TOO_MANY_VALUES", 413, "Upload it.")))
    await score.aenqueue("cv1", "r1")
    assert server.paths() == [
        "POST /v1/jobs", "POST /v1/uploads", "PUT /uploads/u1", "POST /v1/jobs",
    ]  # fmt: skip
    assert server.requests[-1].json["payload_upload"] == "u1"


async def test_refused_items_are_told_apart(score: ScoreJob, server: TinyServer) -> None:
    server.refuse = "bad"
    with pytest.raises(BatchRefused, match="1 of 3 jobs were refused: #1 INVALID_REQUEST: not th"):
        await score.aenqueue_many([("a", "r"), ("bad", "r"), ("c", "r")])


async def test_accepted_items_of_a_refused_batch_keep_their_handles(
    score: ScoreJob, server: TinyServer
) -> None:
    server.refuse = "bad"
    with pytest.raises(BatchRefused) as caught:
        await score.aenqueue_many([("a", "r"), ("bad", "r")])
    assert list(caught.value.accepted) == [0]
    assert isinstance(caught.value.refused[1], InvalidRequest)


async def test_a_batch_whose_reply_was_lost_is_accepted_once(
    score: ScoreJob, server: TinyServer
) -> None:
    server.moods.append("drop")
    handles = await score.aenqueue_many([("a", "r"), ("b", "r")])
    assert len(server.requests) == 2
    assert list(server.jobs) == [handle.id for handle in handles]


async def test_no_jobs_are_no_request(score: ScoreJob, server: TinyServer) -> None:
    assert await score.aenqueue_many([]) == []
    assert server.requests == []


async def test_a_later_slice_that_fails_leaves_the_earlier_handles(
    score: ScoreJob, server: TinyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairway.sdk.client.batch_calls.SLICE_JOBS_MAX", 2)
    monkeypatch.setattr("fairway.sdk.client.batch_calls.AT_ONCE", 1)
    server.moods.extend(["", Reply(403, problem("FORBIDDEN", 403, "key revoked"))])
    with pytest.raises(BatchRefused, match="3 of 5 jobs were refused: #2 FORBIDDEN") as caught:
        await score.aenqueue_many([("a", str(n)) for n in range(5)])
    assert list(caught.value.accepted) == [0, 1]


async def test_the_key_of_a_batch_leaves_room_for_places(score: ScoreJob) -> None:
    with pytest.raises(ValueError, match="1 to 255 printable ASCII"):
        await score.options(idempotency_key="k" * 255).aenqueue_many([("a", "r")])


async def test_a_call_is_a_tuple_or_a_dict(score: ScoreJob) -> None:
    with pytest.raises(TypeError, match="a tuple of arguments or a dict"):
        await score.aenqueue_many(["cv1"])  # type: ignore[list-item]


# -- events ----------------------------------------------------------------------------------------


async def test_events_resume_after_a_broken_stream(score: ScoreJob, server: TinyServer) -> None:
    handle = await score.aenqueue("cv1", "r1")
    server.stream = [
        b': ping\n\nid: 1\nevent: started\ndata: {"state": "running"}\n\nid: 2\ndata: half',
        b'id: 2\nevent: progress\ndata: {"done": 1}\n\nid: 3\ndata: {"state": "succeeded"}\n\n',
    ]
    seen = [event async for event in handle.aevents()]
    assert [(event.id, event.kind) for event in seen] == [
        ("1", "started"),
        ("2", "progress"),
        ("3", "message"),
    ]
    streams = [request for request in server.requests if request.path.endswith("/events")]
    assert streams[0].headers["accept"] == "text/event-stream"
    assert streams[1].headers["last-event-id"] == "1"


async def test_events_end_with_the_job_even_without_a_last_word(
    score: ScoreJob, server: TinyServer
) -> None:
    handle = await score.aenqueue("cv1", "r1")
    server.finish(handle.id, result=None)
    assert [event async for event in handle.aevents()] == []


async def test_events_are_polled_where_no_stream_is_to_be_had(
    score: ScoreJob, server: TinyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairway.sdk.client.client.POLL_SECONDS_MAX", 0.05)
    server.streams_full = 1000
    handle = await score.aenqueue("cv1", "r1")
    seen = []
    async for event in handle.aevents():
        seen.append((event.kind, event.data["id"]))
        if len(server.paths()) > 2:
            server.finish(handle.id, result=None)
    assert seen == [("queued", handle.id), ("succeeded", handle.id)]


async def test_a_stream_that_comes_late_tells_nothing_twice(
    score: ScoreJob, server: TinyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairway.sdk.client.client.POLL_SECONDS_MAX", 0.05)
    server.streams_full = 2
    handle = await score.aenqueue("cv1", "r1")
    known = json.dumps(server.jobs[handle.id])
    server.stream = [
        f'id: 1\nevent: queued\ndata: {known}\n\nid: 2\ndata: {{"state": "dead"}}\n\n'.encode()
    ]
    assert [event.data["state"] async for event in handle.aevents()] == ["queued", "dead"]


async def test_who_follows_a_job_of_a_tenant_that_moves_asks_seldom(server: TinyServer) -> None:
    """Also with less patience than the server asks for: each question is over at once then."""
    async with aclosing(App("scoring", url=server.url, api_key=API_KEY, patience="50ms")) as app:

        @app.job
        def score(cv_id: str) -> int:
            return 1

        handle = await score.aenqueue("cv1")
        moving = Reply(503, problem("TENANT_MOVING", 503), {"retry-after": "1"})
        server.moods.extend([moving] * 1000)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await anext(aiter(handle.aevents()))
        assert len(server.requests) <= 4
