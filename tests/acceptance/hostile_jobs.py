"""Handlers of the hostile hour: one that counts, and what a hostile tenant has."""

from __future__ import annotations

import asyncio
import os
import time

from fairway import CTX, App, Ctx, DependencyFailed, Snooze

app = App("hostile")


@app.job(name="steady", pool="short")
async def steady(number: int, sent: float) -> None:
    """A line says which it was, how long after it was sent it began, and when that was."""
    now = time.time()
    line = f"{number} {now - sent:.6f} {now:.3f}\n"
    log = os.open(os.environ["HOSTILE_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(log, line.encode())
    finally:
        os.close(log)


@app.job(name="bloat", pool="medium")
def bloat(megabytes: int) -> str:
    return "x" * (megabytes << 20)


@app.job(name="forever", pool="short")
async def forever(how: str) -> None:
    if how == "snooze":
        raise Snooze(9e9)
    raise DependencyFailed("upstream", retry_after=9e9)


@app.job(name="babble", pool="medium")
async def babble(megabytes: int, ctx: Ctx = CTX) -> None:
    ctx.progress(0.5, text="x" * (megabytes << 20))
    await asyncio.sleep(1)
    raise ValueError("y" * (megabytes << 20))
