"""An experiment from its start to its page, with what else the machine was busy with."""

from __future__ import annotations

import sys
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairway.lab.report import page
from fairway.lab.report.content import Report
from fairway.lab.screen import tell
from fairway.rig import foreign_load
from fairway.runtime.told_to_end import run


def measured(work: Coroutine[Any, Any, Report], *, json: bool, out: Path) -> int:
    """The exit status of its command."""
    before = foreign_load.look()
    report = run(work)
    load = foreign_load.foreign_load(foreign_load.passed(before, foreign_load.look()))
    report = replace(
        report,
        others=report.others if load is None else load.words,
        doubts=[*report.doubts, *foreign_load.doubts(load)],
    )
    return told(report, json=json, out=out)


def told(report: Report, *, json: bool, out: Path) -> int:
    """Write the page, say what was found."""
    written = page.write(report, out)
    tell(report, str(written))
    if json:
        sys.stdout.write((out / f"{report.name}.json").read_text())
    return report.verdict.value
