"""Jobs that start jobs under test: as in production, when their run has succeeded."""

from __future__ import annotations

import threading

import pytest

from fairway import (
    CTX,
    App,
    Ctx,
    Handle,
    InvalidArguments,
    InvalidRequest,
    Limit,
    NotStarted,
    RunIsOver,
    Snooze,
    TooManyFollowUps,
    Unique,
    testing,
)
from fairway.core.ids import parse_job_id

app = App("flows", url="http://127.0.0.1:9", patience=0)  # nothing listens there
other = App("others", url="http://127.0.0.1:9", patience=0)
kept: list[object] = []


@app.job
async def leaf(n: int = 0) -> int:
    return n


@other.job
def elsewhere(text: str) -> str:
    return text


@app.job(attempts=2)
async def branch(good_at: int = 1, ctx: Ctx = CTX) -> list[str]:
    first = await leaf.aenqueue(1)
    second = ctx.enqueue(elsewhere.options(priority=9), "two")
    kept.append(first)
    if ctx.attempt < good_at:
        raise ConnectionError("not yet")
    return [first.id, second.id]


@app.job
async def asks_its_child() -> int:
    return await (await leaf.aenqueue(1)).aresult()


@app.job
async def snoozes(ctx: Ctx = CTX) -> Snooze | None:
    is_first = ctx.load_checkpoint() is None
    await leaf.aenqueue(1 if is_first else 2)
    await ctx.checkpoint({"is": "known"})
    return Snooze("1h") if is_first else None


@app.job
def grows(generations: int) -> None:
    if generations:
        grows.enqueue(generations - 1)
        leaf.options(delay="1h").enqueue(generations)


def test_inline_runs_them_when_their_run_has_succeeded() -> None:
    with testing.inline():
        handle = branch.enqueue()
        ids = handle.result()
        assert [one.id for one in testing.all_enqueued()] == [handle.id, *ids]
        assert handle.status().children == 2
        assert [one.state for one in handle.children()] == ["succeeded", "succeeded"]
        assert leaf.handle(ids[0]).result() == 1
        assert leaf.handle(ids[0]).status().parent_id == handle.id
        assert all(parse_job_id(one) == one for one in ids)


def test_an_attempt_that_failed_starts_nothing() -> None:
    with testing.inline():
        branch.enqueue(good_at=2)
        assert len(testing.all_enqueued(leaf)) == 1
        branch.enqueue(good_at=3)
        assert len(testing.all_enqueued(leaf)) == 1


def test_manual_keeps_them_for_drain() -> None:
    with testing.manual():
        handle = branch.enqueue()
        assert testing.drain() == {"succeeded": 3}
        assert {one.type for one in handle.children()} == {"leaf", "elsewhere"}
        assert testing.assert_enqueued(elsewhere, {"text": "two"}).request.priority == 9


def test_only_the_run_that_succeeds_counts() -> None:
    with testing.manual():
        snoozes.enqueue()
        testing.drain(with_scheduled=True)
        assert [one.args for one in testing.all_enqueued(leaf)] == [{"n": 2}]


def test_perform_shows_what_a_run_starts() -> None:
    done = testing.perform(branch)
    assert [(one.type, one.args) for one in done.enqueued] == [
        ("leaf", {"n": 1}),
        ("elsewhere", {"text": "two"}),
    ]
    assert [one.id for one in done.enqueued] == done.result
    assert testing.perform(branch, good_at=2).enqueued == []
    with testing.manual():
        testing.perform(branch)
        testing.perform(branch)
        assert len(testing.all_enqueued(leaf)) == 2


def test_waiting_for_ones_own_follow_up_is_told_at_once() -> None:
    done = testing.perform(asks_its_child)
    assert done.error["type"] == "NotStarted"
    assert "starts when this run succeeds" in done.error["message"]
    with testing.inline():
        branch.enqueue()
        handle = kept[-1]
        assert isinstance(handle, Handle)
        for ask in (handle.status, handle.cancel, handle.replay, handle.result):
            with pytest.raises(NotStarted):
                ask()


def test_all_generations_are_cancelled_together() -> None:
    with testing.manual():
        handle = grows.enqueue(3)
        testing.drain()
        assert len(testing.all_enqueued(leaf)) == 3
        handle.cancel(children=True)
        assert {one.state.label for one in testing.all_enqueued(leaf)} == {"cancelled"}
        assert handle.status().state == "succeeded"


# -- bounds --------------------------------------------------------------------------------------


@app.job
async def too_many(count: int) -> int:
    with pytest.raises(TooManyFollowUps, match="at most 1000 jobs"):
        await leaf.aenqueue_many([(n,) for n in range(count)])
    return len(await leaf.aenqueue_many([(n,) for n in range(1000)]))


@app.job
async def too_large() -> int:
    with pytest.raises(InvalidArguments, match="at most 65536"):
        await elsewhere.aenqueue("x" * 66_000)
    taken = [await elsewhere.aenqueue("x" * 60_000) for _ in range(17)]
    with pytest.raises(TooManyFollowUps, match="1048576 bytes"):
        await elsewhere.aenqueue("x" * 60_000)
    return len(taken)


@app.job
async def odd_texts() -> None:
    with pytest.raises(InvalidRequest):
        await elsewhere.aenqueue("\x00")
    with pytest.raises(ValueError, match="an idempotency_key is not taken inside a run"):
        await leaf.options(idempotency_key="mine").aenqueue()


@app.job(concurrency=Limit("n", 1))
async def limited(n: int) -> None: ...


@app.job(unique=Unique())
async def only() -> None: ...


@app.job
async def marks() -> None:
    await limited.options(tags=["nightly"], metadata={"k": "v"}).aenqueue(7)
    with pytest.raises(ValueError, match=r"^only: .*cannot be unique: .*doubles"):
        await only.aenqueue()


def test_follow_ups_have_tags_and_limits_and_are_not_unique() -> None:
    with testing.inline():
        marks.enqueue().result()
        request = testing.assert_enqueued(limited).request
        assert (request.tags, request.metadata) == (["nightly"], {"k": "v"})
        assert [one.key for one in request.limits or []] == ["limited/n=7"]


def test_what_is_too_much_is_told_to_the_handler() -> None:
    assert testing.perform(too_many, 1001).result == 1000
    assert testing.perform(too_large).result == 17
    assert testing.perform(odd_texts).error == {}


@app.job
def in_threads() -> list[str]:
    ctx, ids = Ctx.current(), list[str]()

    def start() -> None:
        for n in range(20):
            ids.append(ctx.enqueue(leaf, n).id)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    kept.append(ctx)
    return ids


def test_threads_of_a_run_may_start_jobs_until_it_is_over() -> None:
    done = testing.perform(in_threads)
    assert len(set(done.result or [])) == len(done.enqueued) == 160
    ctx = kept[-1]
    assert isinstance(ctx, Ctx)
    with pytest.raises(RunIsOver):
        ctx.enqueue(leaf, 1)


@app.job
def wants_none() -> None:
    kept.append(Ctx.current())


def test_a_run_that_wanted_none_is_over_all_the_same() -> None:
    assert testing.perform(wants_none).enqueued == []
    ctx = kept[-1]
    assert isinstance(ctx, Ctx)
    with pytest.raises(RunIsOver):
        ctx.enqueue(leaf, 1)
