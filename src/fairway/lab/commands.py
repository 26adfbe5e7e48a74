"""`fairway lab …`: experiments on a platform of their own. Each writes JSON, plots and one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

app = App(
    name="lab",
    help_format="plaintext",
    help="Find this machine's limits through the front door. Each run starts its own platform. Exit"
    " status: 0 its aims held, 1 they did not, 3 unjudged (the machine was busy, say).",
)

RESULTS = Path("lab-results")


@app.command
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
    from fairway.lab.experiments.steps import StepSetup
    from fairway.lab.run import measured

    setup = StepSetup(speed=speed, seed=seed, arrivals=arrivals)
    return measured(experiment.run(setup), json=json, out=out)


@app.command
def scale(*, speed: float = 1.0, seed: int = 1, json: bool = False, out: Path = RESULTS) -> int:
    """One worker to four: efficiency and the universal scalability law (3 min at speed 1).

    Parameters
    ----------
    speed
        So many times faster: shorter jobs, higher rates, the same shape.
    """
    from fairway.lab.experiments import scale as experiment
    from fairway.lab.experiments.steps import StepSetup
    from fairway.lab.run import measured

    return measured(experiment.run(StepSetup(speed=speed, seed=seed)), json=json, out=out)


@app.command
def front_door(
    *, speed: float = 1.0, seed: int = 1, json: bool = False, out: Path = RESULTS
) -> int:
    """The 202 and the score, side by side, under three loads (2 min at speed 1).

    Parameters
    ----------
    speed
        So many times faster: shorter jobs, higher rates, the same shape.
    """
    from fairway.lab.experiments import front_door as experiment
    from fairway.lab.experiments.steps import StepSetup
    from fairway.lab.run import measured

    return measured(experiment.run(StepSetup(speed=speed, seed=seed)), json=json, out=out)


@app.command
def pool(*, speed: float = 1.0, seed: int = 1, json: bool = False, out: Path = RESULTS) -> int:
    """A worker that holds a connection while it scores, against Fairway (4 min at speed 1).

    Parameters
    ----------
    speed
        So many times faster: shorter jobs, higher rates, the same shape.
    """
    from fairway.lab.experiments import pool as experiment
    from fairway.lab.experiments.steps import StepSetup
    from fairway.lab.run import measured

    return measured(experiment.run(StepSetup(speed=speed, seed=seed)), json=json, out=out)


@app.command
def clients(
    *,
    speed: float = 1.0,
    most: int = 8000,
    way: Annotated[list[str] | None, Parameter(consume_multiple=True)] = None,
    json: bool = False,
    out: Path = RESULTS,
) -> int:
    """A growing crowd that waits by polling, by ETag, by events (up to 45 min at speed 1).

    Parameters
    ----------
    speed
        The crowd grows so many times faster; jobs and polls keep their pace.
    most
        Stop at so many clients.
    way
        Only these ways of waiting: poll, head, sse.
    """
    from fairway.lab.crowd import WAYS
    from fairway.lab.experiments import clients as experiment
    from fairway.lab.run import measured

    ways = tuple(one for one in WAYS if way is None or one in way)
    setup = experiment.CrowdSetup(speed=speed, clients_max=most, ways=ways)
    return measured(experiment.run(setup), json=json, out=out)


@app.command
def fleet(
    scenario: str = "mix",
    *,
    speed: float = 1.0,
    seed: int = 1,
    json: bool = False,
    out: Path = RESULTS,
) -> int:
    """Play a scenario: many customers, things that go wrong, what must hold (1 to 6 min each).

    Parameters
    ----------
    scenario
        mix, noisy-neighbour, herd, dependency-outage, poison-type, worker-loss, or a .toml file.
    speed
        So many times faster: shorter jobs, higher rates, the same shape.
    """
    from fairway.lab.experiments import fleet as experiment
    from fairway.lab.run import measured
    from fairway.lab.scenario import load

    setup = experiment.FleetSetup(load(scenario), speed=speed, seed=seed)
    return measured(experiment.run(setup), json=json, out=out)
