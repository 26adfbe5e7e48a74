"""What measures is loaded by its own commands alone: never by servers and workers."""

from __future__ import annotations

import subprocess
import sys

LOOK = """
import sys
import fairway.cli.main, fairway.cli.processes.serve, fairway.cli.processes.up
import fairway.cli.processes.work, fairway.worker.runner
rooms = {name.split(".")[1] for name in sys.modules if name.startswith("fairway.")}
print(*sorted(rooms & {"rig", "bench", "lab"}))
"""


def test_servers_and_workers_do_not_load_what_measures() -> None:
    ran = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == ""
