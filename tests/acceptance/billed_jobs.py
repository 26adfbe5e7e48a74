"""Jobs whose runs end in every way that usage tells apart."""

from __future__ import annotations

import asyncio
import os
import time

from fairway import CTX, App, Ctx, HandBack, Retry

app = App("billed")
SOON = Retry(attempts=3, backoff=["50ms"])


@app.job(name="billed.well", pool="short")
async def well(seconds: float = 0.0) -> None:
    await asyncio.sleep(seconds)


@app.job(name="billed.second", pool="short", retry=SOON)
async def second_time(seconds: float = 0.0, ctx: Ctx = CTX) -> None:
    """Fails once."""
    await asyncio.sleep(seconds)
    if ctx.attempt == 1:
        raise ValueError("not yet")


@app.job(name="billed.never", pool="short", retry=SOON)
async def never(seconds: float = 0.0) -> None:
    await asyncio.sleep(seconds)
    raise ValueError("never")


@app.job(name="billed.late", pool="medium", timeout="200ms", retry=Retry(1, most={"timeout": 1}))
async def late() -> None:
    await asyncio.sleep(60)


@app.job(name="billed.exit", pool="long")
def leave(ctx: Ctx = CTX) -> None:
    """Takes its process along, the first time."""
    time.sleep(0.05)
    if ctx.delivery == 1:
        os._exit(3)


@app.job(name="billed.back", pool="medium")
async def back(ctx: Ctx = CTX) -> None:
    """Hands itself back when its worker drains."""
    for _ in range(40):
        if ctx.should_stop():
            raise HandBack
        await asyncio.sleep(0.025)
