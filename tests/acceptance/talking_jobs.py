"""Jobs that say something, in every way that a job can run."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Iterator

from fairway import CTX, App, Ctx, JobDeath, Retry, RunFailure

app = App("talking")
library = logging.getLogger("some.library")


def note(*words: object) -> None:
    with open(os.environ["ACCEPTANCE_LEDGER"] + ".hooks", "a") as file:
        file.write(" ".join(map(str, words)) + "\n")


@app.on_worker_start
def begin() -> None:
    note("start")


@app.on_worker_stop
def end() -> None:
    note("stop")


@app.around_run
def span(ctx: Ctx) -> Iterator[None]:
    note("in", ctx.type)
    try:
        yield
    finally:
        note("out", ctx.type)


@app.on_failure
def failed(failure: RunFailure) -> None:
    note("failed", failure.ctx.type, Ctx.current().attempt, repr(failure.error))
    raise RuntimeError("a hook that fails itself")


@app.on_death
def died(death: JobDeath) -> None:
    note("died", death.type, death.attempt, death.failure, death.error["message"])


@app.job(name="talk.doomed", pool="short", attempts=1)
async def doomed() -> None:
    raise KeyError("for good")


@app.job(name="talk.loop", pool="short", retry=Retry(2, backoff=("1ms",)))
async def loop(ctx: Ctx = CTX) -> None:
    ctx.log.info("attempt %d", ctx.attempt)
    await asyncio.to_thread(library.warning, "below the handler")
    if ctx.first_attempt:
        raise ValueError("not yet")


@app.job(name="talk.inline", pool="short", mode="loop")
def inline(ctx: Ctx = CTX) -> None:
    library.info("of a plain function")


@app.job(name="talk.thread", pool="short", mode="thread")
def thread() -> None:
    library.info("in a thread")


@app.job(name="talk.process", pool="long", mode="process")
def process() -> None:
    library.info("in a process")


@app.job(name="talk.flood", pool="short")
async def flood(ctx: Ctx = CTX) -> None:
    for number in range(5000):
        ctx.log.info("line %d %s", number, "x" * (number % 100))
    ctx.log.error("and then it was over")


@app.job(name="talk.slowly", pool="short")
async def slowly(ctx: Ctx = CTX) -> None:
    for number in range(3):
        ctx.log.info("step %d", number)
        await asyncio.sleep(0.4)


@app.job(name="talk.die", pool="long", mode="process", attempts=1)
def die(ctx: Ctx = CTX) -> None:
    ctx.log.info("last words")
    time.sleep(0.5)
    os.kill(os.getpid(), 9)
