"""Jobs that start jobs, in every run mode; one of them dies on the way if it is told to."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

from fairway import CTX, App, Ctx, Fail, Limits, NotStarted, RunIsOver, TooManyFollowUps

app = App("flows", url="http://127.0.0.1:9", api_key="nobody's")  # whoever asks there fails
other = App("others")


@app.job(name="leaf")
async def leaf(n: int, ctx: Ctx = CTX) -> str:
    return f"{ctx.tenant} {n}"


@other.job(name="elsewhere", pool="medium")
def elsewhere(n: int) -> int:
    """Of an app that no worker of these runs serves."""
    return n


def start_three(ctx: Ctx) -> list[str]:
    first = leaf.enqueue(1)
    second = ctx.enqueue(leaf.options(priority=9), 2)
    (third,) = leaf.enqueue_many([(3,)])
    return [first.id, second.id, third.id]


@app.job(name="loop", pool="short")
async def loop(ctx: Ctx = CTX) -> list[str]:
    handle = await leaf.aenqueue(0)
    return [handle.id, *start_three(ctx), (await leaf.aenqueue_many([(4,)]))[0].id]


@app.job(name="inline", pool="short", mode="loop")
def inline(ctx: Ctx = CTX) -> list[str]:
    return start_three(ctx)


@app.job(name="thread", pool="medium", mode="thread")
def thread(ctx: Ctx = CTX) -> list[str]:
    """And from a thread that it made by itself, which knows of the run by `ctx` alone."""
    found: list[str] = []
    helper = threading.Thread(target=lambda: found.append(ctx.enqueue(leaf, 9).id))
    helper.start()
    helper.join()
    return found + start_three(ctx)


@app.job(name="process", pool="medium", mode="process")
def process(ctx: Ctx = CTX) -> list[str]:
    return start_three(ctx)


@app.job(name="isolated", pool="long", limits=Limits(memory="512MB"))
def isolated(ctx: Ctx = CTX) -> list[str]:
    return start_three(ctx)


@app.job(name="questions", pool="short")
async def questions(ctx: Ctx = CTX) -> list[str]:
    """What is refused inside a run, by name."""
    told = []
    handle = await leaf.aenqueue(1)
    try:
        await handle.aresult()
    except NotStarted as error:
        told.append(error.code)
    try:
        await leaf.aenqueue_many([(n,) for n in range(1000)])
    except TooManyFollowUps as error:
        told.append(error.code)
    try:
        await leaf.options(idempotency_key="mine").aenqueue(1)
    except ValueError as error:
        told.append(str(error)[:23])
    return told


@app.job(name="fails", pool="short", attempts=1)
async def fails() -> None:
    await leaf.aenqueue(1)
    raise ValueError("no")


@app.job(name="late", pool="short")
async def late(folder: str) -> None:
    """Leaves a thread behind that hands a job in when the run is over."""
    await leaf.aenqueue(1)
    ctx = Ctx.current()

    def after() -> None:
        while not Path(folder, "over").exists():
            time.sleep(0.02)
        try:
            ctx.enqueue(leaf, 2)
        except RunIsOver as error:
            Path(folder, "told").write_text(error.code)

    threading.Thread(target=after, daemon=True).start()


@app.job(name="victim", pool="medium", mode="thread")
def victim(folder: str, dies: bool = False, waits: bool = False, ctx: Ctx = CTX) -> int:
    """Starts ten; then its runner is killed, the first time, or it waits until it may end."""
    leaf.enqueue_many([(n,) for n in range(10)])
    Path(folder, f"{ctx.job_id}.{ctx.delivery}").touch()
    if dies and ctx.delivery == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    while waits and not Path(folder, f"{ctx.job_id}.go").exists():
        time.sleep(0.02)
    return ctx.delivery


# -- flows ---------------------------------------------------------------------------------------


@app.job(name="add")
async def add(a: int, b: int = 1) -> int:
    return a + b


@app.job(name="total")
async def total(of: int, note: str = "") -> str:
    return f"{of} {note}".strip()


@app.job(name="break_if")
def break_if(path: str) -> str:
    """Fails for good while the file is there."""
    if Path(path).exists():
        raise Fail("told to")
    return "whole"


@app.job(name="mark")
def mark(path: str) -> None:
    """Once is one line."""
    with Path(path).open("a") as file:
        file.write("called\n")
