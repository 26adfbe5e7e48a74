"""The jobs of the lab's workers. `lab.score` is the scoring service's simulated mode: it waits.

A wait holds a slot and nothing else, which is what the experiments are about. The switches of
`lab.call` are files in LAB_FOLDER, so that an experiment can break a dependency and mend it.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from fairway import CTX, App, Ctx, DependencyFailed

app = App("lab")


@app.job(name="lab.score", pool="lab")
async def score(seconds: float, ctx: Ctx = CTX) -> int:
    """Wait, then give a score that depends on the job alone."""
    await asyncio.sleep(seconds)
    return int(ctx.job_id[-4:], 16) % 101


@app.job(name="lab.short", pool="short")
async def short(seconds: float) -> None:
    await asyncio.sleep(seconds)


@app.job(name="lab.medium", pool="medium")
async def medium(seconds: float) -> None:
    await asyncio.sleep(seconds)


@app.job(name="lab.long", pool="long", mode="loop")
async def long(seconds: float) -> None:
    """In the event loop: a process for each would measure the starting of processes."""
    await asyncio.sleep(seconds)


@app.job(name="lab.call", pool="short")
async def call(seconds: float, dependency: str = "payments") -> None:
    """Leans on something that may be down: `<dependency>.down` in the lab's folder says so."""
    calls = Path(os.environ["LAB_FOLDER"]) / f"{dependency}.calls"
    with calls.open("ab") as file:  # appended whole: the experiment counts how often it was asked
        file.write(b".")
    await asyncio.sleep(seconds)
    if calls.with_suffix(".down").exists():
        raise DependencyFailed(dependency, "is down, by order of the experiment")


@app.job(name="lab.poison", pool="short")
async def poison(seconds: float) -> None:
    """Fails each time."""
    await asyncio.sleep(seconds)
    raise RuntimeError("this job type is broken, by order of the experiment")
