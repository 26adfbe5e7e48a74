"""Jobs that fail in every way there is. Each run leaves a line in the ledger as it begins."""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import signal
from pathlib import Path

from tests.acceptance.jobs import new_run, sign

from fairway import CTX, App, Ctx, DependencyFailed

app = App("failing")


def away() -> Path:
    """While this file is there, the dependency is not."""
    return Path(os.environ["ACCEPTANCE_LEDGER"]).with_name("away")


@app.job(name="good", pool="short")
async def good(seconds: float = 0.0, ctx: Ctx = CTX) -> None:
    sign("begin", new_run(), ctx)
    await asyncio.sleep(seconds)


@app.job(name="leaning", pool="short")
async def leaning(ctx: Ctx = CTX) -> None:
    """Calls something that may be away; the line in the ledger is the call."""
    sign("begin", new_run(), ctx)
    if away().exists():
        raise DependencyFailed("flag", "503 Service Unavailable")


@app.job(name="broken", pool="short")
async def broken(ctx: Ctx = CTX) -> None:
    sign("begin", new_run(), ctx)
    raise ValueError(f"no such thing as {ctx.job_id}")


@app.job(name="doomed", pool="short", attempts=1)
async def doomed(ctx: Ctx = CTX) -> None:
    sign("begin", new_run(), ctx)
    raise ValueError("no second try")


@app.job(name="kills", pool="short")
async def kills(ctx: Ctx = CTX) -> None:
    """What the kernel does to a process when memory is out, and what `kill -9` does."""
    sign("begin", new_run(), ctx)
    os.kill(os.getpid(), signal.SIGKILL)


@app.job(name="exhausts", pool="short")
async def exhausts(ctx: Ctx = CTX) -> None:
    """Memory is out, and native code writes where it was given none."""
    sign("begin", new_run(), ctx)
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    resource.setrlimit(resource.RLIMIT_AS, (256 << 20, resource.RLIM_INFINITY))
    while True:
        ctypes.memset(libc.malloc(ctypes.c_size_t(64 << 20)) or 0, 1, 64 << 20)


@app.job(name="segfaults", pool="short")
async def segfaults(ctx: Ctx = CTX) -> None:
    sign("begin", new_run(), ctx)
    ctypes.string_at(0)
