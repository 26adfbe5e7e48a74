"""The units of systemd: known directives, enough time to stop, few rights; read by systemd itself.

`systemd-analyze` is of Debian's package systemd; where it is not installed, its part is left out.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

UNITS = sorted((Path(__file__).parents[2] / "deploy/systemd").glob("*.service"))
ANALYZE = shutil.which("systemd-analyze")
EXPOSURE_MAX = {"fairway-server.service": 3.0}  # of 10; jobs and PostgreSQL need more
EXPOSURE_USUAL_MAX = 5.5
with_systemd = pytest.mark.skipif(ANALYZE is None, reason="systemd is not installed")


def settings_of(unit: Path) -> dict[str, str]:
    return dict(re.findall(r"^(\w+)=(.*)$", unit.read_text(), re.MULTILINE))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_says_when_it_is_ready_and_has_time_to_stop(unit: Path) -> None:
    said = settings_of(unit)
    assert (said["Type"], said["NotifyAccess"]) == ("notify", "main")
    assert said["Restart"] == "always"
    assert int(said["WatchdogSec"]) >= 30
    grace = re.search(r"--grace (\d+)", said["ExecStart"])
    assert int(said["TimeoutStopSec"]) >= (int(grace[1]) + 30 if grace else 30)
    if any(word in said["ExecStart"] for word in ("worker", " up ", " fleet ")):
        assert said["KillMode"] == "mixed", "runners and PostgreSQL are ended by their parents"
        assert said["Delegate"] == "yes"
    assert said["NoNewPrivileges"] == "yes"
    assert said["ProtectSystem"] == "strict"


def runnable(unit: Path, folder: Path) -> Path:
    """As on a machine where all is installed."""
    text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(), flags=re.MULTILINE)
    text = re.sub(r"^EnvironmentFile=-?.*$", "", text, flags=re.MULTILINE)
    copy = folder / unit.name.replace("@", "@short")
    copy.write_text(text.replace("%i", "short"))
    return copy


@with_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_reads_it_without_a_word(unit: Path, tmp_path: Path) -> None:
    assert ANALYZE is not None
    copy = runnable(unit, tmp_path)
    command = [ANALYZE, "verify", "--man=no", "--recursive-errors=no", str(copy)]
    read = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    about_it = [line for line in read.stderr.splitlines() if unit.stem.rstrip("@") in line]
    assert (about_it, read.returncode) == ([], 0), read.stderr


@with_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_it_has_few_rights(unit: Path, tmp_path: Path) -> None:
    assert ANALYZE is not None
    copy = runnable(unit, tmp_path)
    command = [ANALYZE, "security", "--offline=true", "--json=short", str(copy)]
    judged = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    rows = json.loads(judged.stdout)
    exposed = {row["name"]: float(row["exposure"]) for row in rows if row.get("exposure")}
    assert sum(exposed.values()) <= EXPOSURE_MAX.get(unit.name, EXPOSURE_USUAL_MAX), exposed
