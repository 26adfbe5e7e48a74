"""What a runner does to itself, seen in a process that did it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

PROGRAM = """
import json, os, resource, sys
from pathlib import Path
from fairway.core.run.process_limits import RunLimits
from fairway.worker.limits import confine
{work}
print(json.dumps({{
    "comm": Path("/proc/self/comm").read_text().strip(),
    "oom": Path("/proc/self/oom_score_adj").read_text().strip(),
    **{{name: resource.getrlimit(getattr(resource, "RLIMIT_" + name))
       for name in ("CORE", "DATA", "FSIZE", "NOFILE", "CPU")}},
}}))
"""


def after(work: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(work=work)], capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's limits are Linux's")
def test_limits_hold_the_process_and_cannot_be_raised_again() -> None:
    found = after(
        "confine.apply(RunLimits(memory_bytes=1 << 30, file_bytes=1 << 20, open_files=99))\n"
        "confine.apply(RunLimits(open_files=10_000))\n"  # what is lower stays
        "confine.name_process('of-a-long-name-this-is')\n"
        "confine.die_before_the_keeper()"
    )
    assert found["DATA"] == [1 << 30] * 2
    assert found["FSIZE"] == [1 << 20] * 2
    assert found["NOFILE"] == [99] * 2
    assert found["CORE"] == [0, 0], "a job killed for its memory does not fill the disk with it"
    assert found["comm"] == "of-a-long-name-"
    assert found["oom"] == "500"


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's limits are Linux's")
def test_processor_time_counts_from_the_run_that_begins() -> None:
    """The soft limit alone: a warm runner's next job gets as much again."""
    found = after(
        "before = resource.getrlimit(resource.RLIMIT_CPU)[1]\n"
        "confine.allow_processor_time(RunLimits(cpu_ms=5000))\n"
        "assert resource.getrlimit(resource.RLIMIT_CPU)[1] == before\n"
        "confine.allow_processor_time(RunLimits())"
    )
    soft, _ = found["CPU"]
    assert 5 < soft <= 5 + 60, "what was used so far comes on top"
