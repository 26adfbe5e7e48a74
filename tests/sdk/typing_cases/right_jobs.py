"""What must pass every checker: jobs of both colours, with and without a Ctx."""

from __future__ import annotations

from typing import Any, assert_type

import msgspec

from fairway import CTX, App, Cancel, Ctx, Handle, Job, Retry, Snooze, testing

app = App("scoring", url="http://127.0.0.1:8700", api_key="key", patience="5s")


class Score(msgspec.Struct):
    value: float
    why: str


@app.job(pool="short", timeout="2m", mode="loop", retry=Retry(5, on=(OSError,)))
async def score(cv_id: str, rubric: str, ctx: Ctx = CTX) -> Score:
    ctx.progress(1, 2, rubric)
    return Score(1.0, cv_id)


@app.job
async def bare(number: int) -> int | Snooze:
    return number if number else Snooze("5m")


@app.job(mode="thread", name="files.resize", attempts=3, priority=1)
def resize(path: str, *, width: int = 100) -> bool | Cancel:
    Ctx.current().log.info("resizing %s", path)
    return width > 0


@app.job
def nothing() -> None:
    return None


@app.schedule("0 9 * * MON-FRI", tz="Europe/Lisbon", overlap="queue_one", args={"number": 1})
@app.job(pool="medium")
async def daily(number: int) -> int:
    return number


@app.schedule(every="90s", tick="at")
def plain(at: str) -> bool:
    return bool(at)


def enqueue() -> None:
    assert_type(score.enqueue("cv1", "r1"), Handle[Score])
    assert_type(score.enqueue(cv_id="cv1", rubric="r1").result(timeout=30), Score)
    assert_type(score.options(priority=3, idempotency_key="k").enqueue("a", "b"), Handle[Score])
    assert_type(
        score.enqueue_many([("a", "b"), {"cv_id": "a", "rubric": "b"}]), list[Handle[Score]]
    )
    assert_type(score.enqueue_many([score.call("a", rubric="b").keyed("k")]), list[Handle[Score]])
    assert_type(bare.enqueue(1), Handle[int | Snooze])
    assert_type(bare.enqueue(1).result(), int)
    assert_type(resize.enqueue("a.png", width=10).result(), bool)
    assert_type(nothing.enqueue(), Handle[None])
    assert_type(daily.options(delay="5m", on_late="flag").enqueue(1), Handle[int])
    assert_type(plain.enqueue("now").result(), bool)
    assert_type(Handle.from_id(app, "id"), Handle[Any])
    assert_type(score.handle("id"), Handle[Score])


def follow_up(ctx: Ctx) -> None:
    assert_type(ctx.enqueue(score, "cv1", "r1"), Handle[Score])
    assert_type(ctx.enqueue(resize.options(delay="1m"), "a.png", width=10), Handle[bool | Cancel])


async def aenqueue() -> None:
    handle = await score.aenqueue("cv1", "r1")
    assert_type(await handle.aresult(timeout="30s"), Score)
    assert_type(await score.aenqueue_many([("a", "b")]), list[Handle[Score]])
    async for event in handle.aevents():
        assert_type(event.kind, str)


async def call(ctx: Ctx) -> None:
    assert_type(await score("cv1", "r1", ctx), Score)
    assert_type(resize("a.png"), bool | Cancel)


def take(job: Job[..., Any]) -> str:
    return job.name


def test_jobs() -> None:
    names = [take(score), take(resize), take(bare)]
    assert len(names) == len(app.jobs) - 3
    with testing.manual() as mode:
        assert_type(testing.perform(score, "cv1", "r1", attempt=3).result, Score | None)
        testing.assert_enqueued(score, args={"cv_id": "cv1"})
        mode.clock.advance("2h")
