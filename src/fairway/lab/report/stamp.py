"""Where a figure comes from: machine, versions, moment. A figure without them is a rumour."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path


def stamp() -> dict[str, str]:
    return {
        "taken": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "fairway": f"{version('fairway')} {_commit()}".strip(),
        "python": platform.python_version(),
        "machine": f"{_processor()}, {os.cpu_count()} cores, everything on them",
        "system": f"{platform.system()} {platform.release()}",
    }


def _commit() -> str:
    """The commit of a checkout; nothing when installed from a package."""
    here = Path(__file__).parent
    try:
        found = subprocess.run(
            ["git", "-C", str(here), "describe", "--always", "--dirty"],
            capture_output=True,
            text=True,
            check=False,
            timeout=5,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{platform.machine()} {names[0]}" if names else platform.machine()
