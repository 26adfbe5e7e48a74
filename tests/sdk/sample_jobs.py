"""Jobs with every kind of end, for the tests of the testing modes."""

from __future__ import annotations

import asyncio

import msgspec

from fairway import CTX, App, Cancel, Ctx, DependencyFailed, Fail, Snooze

# Nothing listens there: a job that leaves the testing mode fails at once.
app = App("scoring", url="http://127.0.0.1:9", patience=0)


class Score(msgspec.Struct):
    value: float
    why: str = ""


tried: list[int] = []


@app.job
async def score(cv_id: str, rubric: str = "plain", ctx: Ctx = CTX) -> Score:
    ctx.log.info("scoring %s", cv_id)
    for _ in ctx.track(range(3), "pages"):
        await asyncio.sleep(0)
    return Score(ctx.attempt, f"{cv_id} {rubric}")


@app.job(attempts=3)
def flaky(good_at: int, ctx: Ctx = CTX) -> int:
    tried.append(ctx.attempt)
    if ctx.attempt < good_at:
        raise ConnectionError("not yet")
    return ctx.attempt


@app.job
async def drowsy(seconds: float, ctx: Ctx = CTX) -> str | Snooze:
    tried.append(ctx.delivery)
    return "awake" if len(tried) > 2 else Snooze(seconds)


@app.job
async def unwanted() -> Cancel:
    return Cancel("not needed")


@app.job(timeout="50ms")
async def slow() -> None:
    await asyncio.sleep(30)


@app.job
async def fans_out(count: int) -> None:
    await score.aenqueue_many([(f"cv{n}",) for n in range(count)])


@app.job(mode="loop")
def calls_sync() -> str:
    return score.enqueue("inner").id


@app.job
def leans_on_stripe() -> None:
    raise DependencyFailed("stripe", retry_after="1m")


@app.job
def hopeless() -> None:
    raise Fail("no")
