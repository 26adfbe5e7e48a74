"""A job that fails once, has its worker leave, and says what trace it finds itself in."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from opentelemetry import trace

from fairway import CTX, App, Ctx, Retry

app = App("traced")


@app.job(name="traced", pool="short", retry=Retry(3, backoff=["1s"]))
async def traced(workers: list[int], ctx: Ctx = CTX) -> dict[str, str | None]:
    if ctx.attempt == 1:
        os.kill(keeper_of(workers), signal.SIGTERM)  # it takes no more jobs
        await asyncio.sleep(0.2)
        raise ValueError("not yet")
    current = trace.get_current_span().get_span_context()
    follow.enqueue()
    return {"traceparent": ctx.traceparent, "span": f"{current.span_id:016x}"}


@app.job(name="follow", pool="short")
def follow(ctx: Ctx = CTX) -> str | None:
    return ctx.traceparent


def keeper_of(workers: list[int]) -> int:
    """Which of these workers this process is one of."""
    pid = os.getpid()
    while pid not in workers:
        stat = Path(f"/proc/{pid}/stat").read_text()
        pid = int(stat.rpartition(")")[2].split()[1])
    return pid
