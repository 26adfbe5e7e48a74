"""Every line of a log that is not a terminal is JSON, whoever wrote it."""

from __future__ import annotations

import json
import subprocess
import sys

ENDING = """
import gc, sys, threading, warnings
from fairway.runtime.log_lines import write_unclaimed_as_json
write_unclaimed_as_json()
warnings.warn("an old way", UserWarning)

class Stubborn:
    def __del__(self):
        raise ValueError("not in here")

def broken():
    raise KeyError("k")

one = Stubborn()
del one
thread = threading.Thread(target=broken, name="helper")
thread.start()
thread.join()
raise RuntimeError("the end")
"""

PROGRAM = """
import asyncio, logging
from fairway.runtime.telemetry import configure_logging, logger
configure_logging(json_lines=True)
logger("worker").info("ours", jobs=3)

async def main():
    loop = asyncio.get_running_loop()
    error = ConnectionResetError("gone")
    loop.call_exception_handler({"message": "Fatal error on transport", "exception": error})
    logging.getLogger("fairway.job.score").warning("%d left", 2, extra={"job_id": "j1"})

asyncio.run(main())
"""


def test_what_the_event_loop_says_is_json_too() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    lines = [json.loads(line) for line in ran.stderr.splitlines()]
    ours, loops, jobs = lines
    assert (ours["event"], ours["jobs"], ours["level"]) == ("ours", 3, "info")
    assert loops["event"].startswith("Fatal error on transport")
    assert (loops["logger"], loops["level"]) == ("asyncio", "error")
    assert "ConnectionResetError: gone" in loops["exception"]
    assert (jobs["event"], jobs["job"], jobs["level"]) == ("2 left", "j1", "warning")


def test_warnings_and_errors_that_nobody_caught_are_json_too() -> None:
    ran = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True)
    assert ran.returncode == 1
    warned, ignored, thread, end = [json.loads(line) for line in ran.stderr.splitlines()]
    assert warned["event"].startswith("UserWarning: an old way (")
    assert (warned["logger"], warned["level"]) == ("py.warnings", "warning")
    assert "ValueError: not in here" in ignored["exception"]
    assert thread["event"] == "an error ended the thread helper"
    assert "KeyError: 'k'" in thread["exception"]
    assert (end["level"], end["logger"]) == ("critical", "fairway")
    assert end["exception"].endswith("RuntimeError: the end")
