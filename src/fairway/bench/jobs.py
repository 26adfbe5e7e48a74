"""The jobs that benches run: as little work as possible, so that the platform is what is measured.

With FAIRWAY_BENCH_DELAYS set, the runner appends to that file how long each job took from the
client's intended send to the start of its handler. With FAIRWAY_BENCH_RUNS it appends when each nap
began and ended, and whose it was.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import os
import time
from pathlib import Path

from fairway import App

app = App("bench")

NAP_TYPES = 300
LINES_KEPT = 500


class _File:
    """Lines kept in memory and appended now and then; the rest when the process ends."""

    def __init__(self, variable: str) -> None:
        self._path = os.environ.get(variable)
        self._lines: list[str] = []
        atexit.register(self.write)

    def add(self, line: str) -> None:
        self._lines.append(line)
        if len(self._lines) >= LINES_KEPT:
            self.write()

    def write(self) -> None:
        if self._path and self._lines:
            with Path(self._path).open("a") as file:
                file.write("\n".join(self._lines) + "\n")
        self._lines.clear()


_delays = _File("FAIRWAY_BENCH_DELAYS")
_runs = _File("FAIRWAY_BENCH_RUNS")
_numbers = itertools.count()


@app.job(name="bench.noop", pool="short", mode="loop")
def noop(n: int) -> None:
    """Nothing, at once."""


@app.job(name="bench.timed", pool="short")
async def timed(sent: float) -> None:
    """Nothing, and how long it took to get here (one machine, one wall clock)."""
    _delays.add(f"{time.time() - sent:.6f}")


async def nap(who: str, seconds: float) -> None:
    """Holds a slot for so long, and says whose it was."""
    run = f"{os.getpid()}-{next(_numbers)}"
    _runs.add(f"+ {who} {run} {time.time():.6f}")
    try:
        await asyncio.sleep(seconds)
    finally:
        _runs.add(f"- {who} {run} {time.time():.6f}")


async def held(sent: float, seconds: float) -> None:
    """How long it took to get here; then the slot is held for a while."""
    _delays.add(f"{time.time() - sent:.6f}")
    _delays.write()  # a process of its own may be killed at any time
    await asyncio.sleep(seconds)


for pool in ("short", "medium", "long"):
    app.job(name=f"bench.held.{pool}", pool=pool)(held)


# The same nap under many names: each type has an estimate of its own.
for number in range(NAP_TYPES):
    app.job(name=f"bench.nap.{number}", pool="short")(nap)
