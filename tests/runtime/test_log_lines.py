"""Every line of a log is written as our own are, whoever wrote it, and quotes no row."""

from __future__ import annotations

import json
import subprocess
import sys

ENDING = """
import gc, sys, threading, warnings
from fairway.runtime.log_lines import JsonLines, write_unclaimed
write_unclaimed(JsonLines())
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


QUOTING = """
from asyncpg.exceptions import UniqueViolationError
from fairway.runtime.telemetry import configure_logging
configure_logging(json_lines=False, server="two")
import asyncio, logging

error = UniqueViolationError("duplicate key value")
error.detail = "Key (payload)=(my heart) exists."

async def main():
    loop = asyncio.get_running_loop()
    loop.call_exception_handler({"message": "Nobody asked for this", "exception": error})
    logging.getLogger("fairway.job.score").warning("%d left", 2, extra={"job_id": "j1"})

asyncio.run(main())
raise error
"""


def test_for_people_a_stack_stands_below_its_line_and_quotes_no_row() -> None:
    ran = subprocess.run([sys.executable, "-c", QUOTING], capture_output=True, text=True)
    assert ran.returncode == 1
    assert "my heart" not in ran.stderr
    assert ran.stderr.count("UniqueViolationError: duplicate key value") == 2
    assert ran.stderr.count("DETAIL: [redacted]") == 2
    lines = [line for line in ran.stderr.splitlines() if line.endswith("server=two")]
    assert lines[0].endswith("[error    ] Nobody asked for this logger=asyncio server=two")
    assert lines[1].endswith("[warning  ] 2 left logger=fairway.job.score job=j1 server=two")
    assert "[critical ] nobody caught an error: this process ends" in lines[2]
