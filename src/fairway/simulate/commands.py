"""`fairway simulate`: the platform's scheduling code in virtual time; a fleet, or what-ifs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from fairway import FairwayError

if TYPE_CHECKING:
    from fairway.lab.report.content import Report

app = App(
    name="simulate",
    help_format="plaintext",
    help="The platform's own scheduler, retries, circuits, pool classifier and autoscaler in"
    " virtual time. Exit status: 0 its aims held, 1 they did not, 3 unjudged.",
)

RESULTS = Path("lab-results")


def _flag(text: str) -> Parameter:
    return Parameter(help=text, negative="")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Task:
    """What is simulated; the fleet of the design, unless told."""

    from_: Annotated[
        Path | None,
        Parameter(
            name="--from",
            help="Replay recorded work of this file and say who gains and who loses by a change.",
        ),
    ] = None
    scenario: Annotated[
        str | None,
        _flag("A scenario of the lab (fairway lab fleet) in virtual time, by name or file."),
    ] = None
    against_real: Annotated[
        bool, _flag("Play the scenario (weights, unless told) on real processes, too; compare.")
    ] = False
    capacity: Annotated[bool, _flag("Print the sheet of docs/CAPACITY.md.")] = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class FleetOptions:
    """The fleet of the design."""

    jobs_per_day: Annotated[float, _flag("Of the whole platform.")] = 2e9
    shards: Annotated[
        int, _flag("One of so many is simulated, with its part of tenants, jobs and slots.")
    ] = 64
    minutes: Annotated[float, _flag("Of virtual time.")] = 60.0
    autoscale: Annotated[
        bool, Parameter(help="Workers come and go by the autoscaler; else the dead are replaced.")
    ] = True


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ReplayOptions:
    """Recorded work under other terms."""

    weight: Annotated[list[str] | None, _flag("With --from: a tenant's weight, as acme=50.")] = None
    tier: Annotated[list[str] | None, _flag("With --from: a tenant's tier, as acme=pro.")] = None
    cap: Annotated[
        list[str] | None, _flag("With --from: a tenant's jobs at once in a pool, as acme=20.")
    ] = None
    slots: Annotated[
        str | None, _flag("With --from: as short=50,medium=8; else a fifth of them is idle.")
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The draw, and where results go."""

    seed: Annotated[int, _flag("The same seed gives the same result.")] = 1
    json: Annotated[bool, _flag("Print the results as one JSON object.")] = False
    out: Annotated[Path, _flag("The folder for JSON, plots and the page.")] = RESULTS


TASK, FLEET, REPLAY, RUN = Task(), FleetOptions(), ReplayOptions(), RunOptions()


@app.default
def simulate(
    *,
    task: Task = TASK,
    fleet: FleetOptions = FLEET,
    replay: ReplayOptions = REPLAY,
    run: RunOptions = RUN,
) -> int:
    """An hour of 2 billion jobs a day in some minutes; recorded work under other terms."""
    if task.capacity:
        return _capacity()
    if task.from_ is not None:
        return _replay(task.from_, replay, run)
    if replay != REPLAY:
        raise FairwayError(
            "--weight, --tier, --cap and --slots change recorded work: name its file with --from."
        )
    if task.against_real:
        return _against_real(task.scenario or "weights", run)
    if task.scenario is not None:
        return _scenario(task.scenario, run)
    return _hour(fleet, run)


def _capacity() -> int:
    from fairway.simulate import capacity

    sys.stdout.write(capacity.text())
    return 0


def _hour(options: FleetOptions, run: RunOptions) -> int:
    import math

    from fairway.lab.screen import bar
    from fairway.simulate.contention import contended
    from fairway.simulate.design import Design
    from fairway.simulate.hour import simulate_hour
    from fairway.simulate.hour_report import report

    if options.shards < 1 or options.minutes <= 0 or options.jobs_per_day <= 0:
        raise FairwayError("--shards, --minutes and --jobs-per-day must be above 0.")
    design = Design(
        jobs_per_day=options.jobs_per_day,
        shards=options.shards,
        seconds=options.minutes * 60,
        seed=run.seed,
    )
    with bar("minutes of virtual time", math.ceil(options.minutes)) as progress:
        hour = simulate_hour(design, autoscale=options.autoscale, on_minute=progress.step)
    return _tell(report(hour, contended(seconds=min(options.minutes, 60.0), seed=run.seed)), run)


def _replay(path: Path, options: ReplayOptions, run: RunOptions) -> int:
    from fairway.simulate import replay, replay_report, usage_log

    with path.open("rb") as lines:
        recorded = usage_log.read(lines, run.seed)
    changes = [
        replay.parse_change(term, text)
        for term in ("weight", "tier", "cap")
        for text in getattr(options, term) or ()
    ]
    slots = replay.parse_slots(options.slots) if options.slots else replay.usual_slots(recorded)
    tenants = replay.changed(recorded.tenants, changes)
    before = replay.replay(recorded, recorded.tenants, slots, run.seed)
    after = replay.replay(recorded, tenants, slots, run.seed)
    found = replay.effects(before, after)
    status = _tell(replay_report.report(recorded, changes, slots, found), run)
    if not run.json:
        sys.stdout.write("".join(f"{line}\n" for line in replay_report.lines(found)))
    return status


def _scenario(name: str, run: RunOptions) -> int:
    from fairway.lab.experiments import fleet_report
    from fairway.lab.measure.figures import figures
    from fairway.lab.scenario import load
    from fairway.simulate.played import Play

    scenario = load(name)
    play = Play(scenario, run.seed)
    stories = play.run()
    windows = {window.name: (window.start, window.end) for window in scenario.windows}
    found = figures(stories, windows) | play.amplification()
    report = fleet_report.report(scenario, stories, found, 1.0)
    report.name, report.brand = f"simulate-{scenario.name}", "Fairway simulate"
    return _tell(report, run)


def _against_real(name: str, run: RunOptions) -> int:
    from fairway.lab.run import measured
    from fairway.lab.scenario import load
    from fairway.simulate import agreement

    return measured(agreement.run(load(name), run.seed), json=run.json, out=run.out)


def _tell(report: Report, run: RunOptions) -> int:
    from fairway.lab.run import told

    return told(report, json=run.json, out=run.out)
