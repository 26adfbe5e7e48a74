"""The jobs of the acceptance tests. Every run signs a ledger as it begins and as it ends.

A ledger is a file that runs append whole lines to, so a run that was killed leaves its beginning
and no end, and a job that ran twice is there twice. A run's result names the run, so the result
that was recorded tells which run won.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import secrets
import time
from typing import Any

from fairway import CTX, App, Ctx

app = App("acceptance")

Signature = dict[str, Any]


def sign(event: str, run: str, ctx: Ctx) -> Signature:
    """One line in the ledger; the line without what only the ledger needs is the run's result."""
    signature = {"run": run, "job": ctx.job_id, "delivery": ctx.delivery, "pid": os.getpid()}
    line = {"event": event, "at": time.time(), "attempt": ctx.attempt, **signature}
    ledger = os.open(os.environ["ACCEPTANCE_LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(ledger, json.dumps(line).encode() + b"\n")
    finally:
        os.close(ledger)
    return signature


def new_run() -> str:
    return secrets.token_hex(6)


async def signed_nap(seconds: float = 0.0, ctx: Ctx = CTX) -> Signature:
    """Runs in the event loop of the shared runner; a job of every app here."""
    run = new_run()
    sign("begin", run, ctx)
    await asyncio.sleep(seconds)
    return sign("end", run, ctx)


nap = app.job(name="nap", pool="short")(signed_nap)


@app.job(name="idle", pool="short")
async def idle() -> None:
    """Leaves no signature: for backlogs whose runs nobody counts."""


@app.job(name="discard", pool="short")
async def discard(pad: str, ctx: Ctx = CTX) -> Signature:
    """However much was sent."""
    run = new_run()
    sign("begin", run, ctx)
    return sign("end", run, ctx)


@app.job(name="work", pool="medium")
def work(seconds: float = 0.0, ctx: Ctx = CTX) -> Signature:
    """Runs in a thread of the shared runner."""
    run = new_run()
    sign("begin", run, ctx)
    time.sleep(seconds)
    return sign("end", run, ctx)


@app.job(name="haul", pool="long")
def haul(seconds: float = 0.0, ctx: Ctx = CTX) -> Signature:
    """Runs in a process of its own."""
    run = new_run()
    sign("begin", run, ctx)
    time.sleep(seconds)
    return sign("end", run, ctx)


@app.job(name="echo", pool="medium")
async def echo(text: str) -> str:
    """Large in, large out."""
    return text[::-1]


@app.job(name="march", pool="long")
def march(steps: int, seconds: float, ctx: Ctx = CTX) -> Signature:
    """Saves a checkpoint after every step, and goes on from the last one that was saved."""
    run = new_run()
    sign("begin", run, ctx)
    for step in ctx.track(range(ctx.load_checkpoint() or 0, steps)):
        sign(f"step {step}", run, ctx)
        time.sleep(seconds)
        ctx.checkpoint(step + 1)
    return sign("end", run, ctx)


@app.job(name="stroll", pool="medium")
async def stroll(steps: int, seconds: float, ctx: Ctx = CTX) -> Signature:
    """As `march`, in the event loop of the shared runner."""
    run = new_run()
    sign("begin", run, ctx)
    for step in range(ctx.load_checkpoint(int) or 0, steps):
        sign(f"step {step}", run, ctx)
        await asyncio.sleep(seconds)
        await ctx.checkpoint(step + 1)
    return sign("end", run, ctx)


@app.job(name="vary", pool="medium")
def vary(seconds: list[float], ctx: Ctx = CTX) -> Signature:
    """Takes another time at each delivery; the last one stands for all that follow."""
    run = new_run()
    sign("begin", run, ctx)
    time.sleep(seconds[min(ctx.delivery, len(seconds)) - 1])
    return sign("end", run, ctx)


@app.job(name="hog", pool="medium")
def hog(seconds: int, ctx: Ctx = CTX) -> Signature:
    """Holds the interpreter's lock all the while: nothing else in this process moves."""
    run = new_run()
    sign("begin", run, ctx)
    ctypes.PyDLL(None).sleep(seconds)
    return sign("end", run, ctx)


@app.job(name="poison.exit", pool="medium")
def poison_exit(ctx: Ctx = CTX) -> None:
    """Ends the process it runs in, each time."""
    sign("begin", new_run(), ctx)
    os._exit(3)
