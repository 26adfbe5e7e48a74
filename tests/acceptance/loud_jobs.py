"""Jobs that say too much, or what makes no sense."""

from __future__ import annotations

import asyncio
import time

from tests.acceptance.jobs import signed_nap

from fairway import CTX, App, Ctx, DependencyFailed, Snooze

app = App("loud")

MB = 1 << 20

nap = app.job(name="nap", pool="short")(signed_nap)


@app.job(name="large", pool="medium")
async def large(megabytes: int, at: float) -> str:
    """Ends at this moment, as others do."""
    await asyncio.sleep(max(at - time.time(), 0))
    return "x" * megabytes * MB


@app.job(name="later", pool="medium")
async def later(seconds: float) -> Snooze:
    return Snooze(seconds)


@app.job(name="away", pool="medium")
async def away(seconds: float) -> None:
    raise DependencyFailed("stripe", retry_after=seconds)


@app.job(name="chatty", pool="medium")
async def chatty(ctx: Ctx = CTX) -> None:
    ctx.progress(1, 2, "x" * 70 * MB)
    await asyncio.sleep(0.5)
