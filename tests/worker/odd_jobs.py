"""Jobs for tests of a worker's processes. All of them are bounded."""

from __future__ import annotations

import asyncio
import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from fairway import CTX, App, Ctx

app = App("odd")

#: Starts a process in a session of its own, which outlives it for a moment, and ends.
PARENT = """
import subprocess, sys
subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(0.3)"], start_new_session=True)
"""  # noqa: E501  (a program in a string)


@app.job(name="nap", pool="short")
async def nap(seconds: float = 0.0, ctx: Ctx = CTX) -> int:
    """Says that it has begun."""
    ctx.progress(0)
    await asyncio.sleep(seconds)
    return os.getpid()


@app.job(name="orphans", pool="medium")
def orphans(count: int) -> list[int]:
    """Leaves grandchildren behind; answers the status of its own children, which it waits for."""
    return [subprocess.run([sys.executable, "-S", "-c", PARENT]).returncode for _ in range(count)]


@app.job(name="status", pool="medium")
def status(seconds: float) -> int:
    """Lets its child be a zombie for a while, and then wants to know how it ended."""
    child = subprocess.Popen([sys.executable, "-S", "-c", "raise SystemExit(7)"])
    time.sleep(seconds)
    return child.wait()


@app.job(name="hold", pool="medium")
def hold(seconds: int) -> None:
    """Holds the interpreter's lock and does nothing."""
    ctypes.PyDLL(None).sleep(seconds)


@app.job(name="nameless", pool="long", mode="process")
def nameless(seconds: float, ctx: Ctx = CTX) -> None:
    """Gives its process a name that is no text, and outstays its time."""
    Path("/proc/self/comm").write_bytes(b"\xff\xfe")
    ctx.progress(0)
    time.sleep(seconds)


@app.job(name="blocking", pool="short", mode="loop")
def blocking(seconds: float) -> int:
    """Lets nothing else move in the event loop."""
    time.sleep(seconds)
    return os.getpid()


@app.job(name="lone", pool="long", mode="process")
def lone(seconds: float = 0.0, ctx: Ctx = CTX) -> int:
    """Says that it has begun."""
    ctx.progress(0)
    time.sleep(seconds)
    return os.getpid()


@app.job(name="environment", pool="short")
async def environment() -> dict[str, str]:
    return dict(os.environ)


@app.job(name="environment.alone", pool="long", mode="process")
def environment_alone() -> dict[str, str]:
    return dict(os.environ)


@app.job(name="say", pool="short")
async def say(written: str, seconds: float = 0.0) -> int:
    """Writes to its runner's own pipe, as any code in that process can."""
    os.write(int(sys.argv[1]), bytes.fromhex(written))
    await asyncio.sleep(seconds)
    return os.getpid()


@app.job(name="raw", pool="short")
async def raw(written: str, where: str = "result", ctx: Ctx = CTX) -> msgspec.Raw | None:
    """Says bytes of its own as if they were JSON."""
    foreign = msgspec.Raw(bytes.fromhex(written))
    if where == "checkpoint":
        await ctx.checkpoint(foreign)
    elif where == "progress":
        ctx.progress(foreign)  # type: ignore[arg-type]  # that is the point
    return foreign if where == "result" else None
