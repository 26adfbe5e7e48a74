"""Every line of a log that is not a terminal is JSON, whoever wrote it."""

from __future__ import annotations

import json
import subprocess
import sys

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
