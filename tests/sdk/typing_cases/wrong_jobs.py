"""What every checker must refuse: each marked line, and no other."""

from __future__ import annotations

import fairway
from fairway import CTX, App, Ctx, Handle

app = App("scoring")


@app.job(pool="short")
async def score(cv_id: str, rubric: str, ctx: Ctx = CTX) -> float:
    return 1.0


@app.job
def needs_ctx(cv_id: str, ctx: Ctx) -> float:
    return 1.0


def misspelt() -> object:
    return fairway.Appp  # error


def follow_up(ctx: Ctx) -> None:
    ctx.enqueue(score, "cv1")  # error
    ctx.enqueue(score, 1, "r1")  # error


def enqueue() -> None:
    score.enqueue("cv1")  # error
    score.enqueue(1, "r1")  # error
    score.enqueue("cv1", "r1", rubrik="r1")  # error
    score.options(priority="high").enqueue("cv1", "r1")  # error
    score.options(prio=3)  # error
    score.options(priority=3).enqueue("cv1")  # error
    score.enqueue_many(["cv1"])  # error
    score.enqueue_many([score.call(1, "r1")])  # error
    score.enqueue_many([score.call("cv1")])  # error
    score.enqueue_many([needs_ctx.call("cv1", CTX)])  # error
    needs_ctx.enqueue("cv1")  # error


def results() -> None:
    wrong: Handle[str] = score.enqueue("cv1", "r1")  # error
    text: str = score.enqueue("cv1", "r1").result()  # error
    assert wrong.id == text


async def aenqueue() -> None:
    await score.aenqueue("cv1", 2)  # error
    number: int = await (await score.aenqueue("cv1", "r1")).aresult()  # error
    assert number


def declare() -> None:
    app.job(mode="fibre")  # error
    app.job(pol="short")  # error
    app.job(pool=3)  # error
