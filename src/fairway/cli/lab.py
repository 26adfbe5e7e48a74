"""`fairway lab …`: experiments on a platform of their own. Each writes JSON, plots and one page."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cyclopts import App

if TYPE_CHECKING:
    from fairway.lab.report.content import Report

lab = App(
    name="lab",
    help_format="plaintext",
    help="Find this machine's limits through the front door. Each run starts its own platform.",
)

RESULTS = Path("lab-results")
INVALID_STATUS = 3  # the run was made, and its figures must not be believed


@lab.command
def knee(
    *,
    speed: float = 1.0,
    arrivals: Literal["paced", "poisson"] = "paced",
    seed: int = 1,
    json: bool = False,
    out: Path = RESULTS,
) -> int:
    """One worker × 10 slots × 1.5 s, offered 2 to 14 a second: where it bends (10 min at speed 1).

    Parameters
    ----------
    speed
        So many times faster: shorter jobs, higher rates, the same shape.
    arrivals
        Evenly paced, or as independent people arrive.
    seed
        The same seed offers the same arrivals.
    json
        Print the results as one JSON object.
    out
        The folder for JSON, plots and the page.
    """
    from fairway.lab.experiments import knee as experiment

    setup = experiment.Setup(speed=speed, seed=seed, arrivals=arrivals)
    return _run(experiment.run(setup), json=json, out=out)


def _run(work: Coroutine[Any, Any, Report], *, json: bool, out: Path) -> int:
    from fairway.lab.report import page
    from fairway.lab.screen import tell

    report = asyncio.run(work)
    written = page.write(report, out)
    tell(report, str(written))
    if json:
        sys.stdout.write((out / f"{report.name}.json").read_text())
    return 0 if report.is_valid else INVALID_STATUS
