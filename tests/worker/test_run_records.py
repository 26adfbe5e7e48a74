"""What other loggers say while a job runs belongs to its run, wherever it runs."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import asyncio, logging, threading
from fairway import App
from fairway.sdk.handler.context import Ctx, RunFacts, SilentSink
from fairway.sdk.run import run_job
from fairway.worker.run_records import hear_logging

app, library = App("a"), logging.getLogger("some.library")

class Sink(SilentSink):
    def log(self, ctx, level, line, logger=""):
        print(ctx.job_id, level, line, logger)

@app.job(name="loop", pool="short")
async def loop() -> None:
    library.info("in a %(what)s", {"what": "loop"})
    await asyncio.create_task(below())

async def below() -> None:
    library.debug("too small")
    try:
        1 / 0
    except ZeroDivisionError:
        library.exception("below")

@app.job(name="thread", pool="short", mode="thread")
def thread() -> None:
    library.warning("%d %d", 1)  # words that do not fit
    Ctx.current().log.info("once")
    logging.getLogger("py.warnings").error("in a thread")

hear_logging(logging.INFO)

async def main() -> None:
    for name in ("loop", "thread"):
        await run_job(app.jobs[name], b"{}", Ctx(RunFacts("of-" + name, name), Sink()))
    library.info("nobody's")

asyncio.run(main())
"""


def test_by_loop_and_thread() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=30, check=True
    )
    assert ran.stdout.splitlines() == [
        "of-loop 20 in a loop some.library",
        "of-loop 40 below (ZeroDivisionError: division by zero) some.library",
        "of-thread 30 %d %d (1,) some.library",
        "of-thread 20 once ",
        "of-thread 40 in a thread py.warnings",
    ]
    assert ran.stderr == "", "what a run heard is not written a second time"
