"""The jobs that benches run: as little work as possible, so that the platform is what is measured.

With FAIRWAY_BENCH_DELAYS set, the runner appends to that file how long each job took from the
client's intended send to the start of its handler.
"""

from __future__ import annotations

import atexit
import os
import time
from pathlib import Path

from fairway import App

app = App("bench")

_delays: list[float] = []
_file = os.environ.get("FAIRWAY_BENCH_DELAYS")


@app.job(name="bench.noop", pool="short", mode="loop")
def noop(n: int) -> None:
    """Nothing, at once."""


@app.job(name="bench.timed", pool="short")
async def timed(sent: float) -> None:
    """Nothing, and how long it took to get here (one machine, one wall clock)."""
    _delays.append(time.time() - sent)
    if len(_delays) >= 500:
        _write()


def _write() -> None:
    if _file:
        with Path(_file).open("a") as file:
            file.write("".join(f"{delay:.6f}\n" for delay in _delays))
        _delays.clear()


atexit.register(_write)
