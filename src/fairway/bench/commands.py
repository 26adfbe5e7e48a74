"""`fairway bench …`: each measures a platform of its own and shows figures, or prints JSON."""

from __future__ import annotations

from pathlib import Path

from cyclopts import App

app = App(
    name="bench",
    help_format="plaintext",
    help="Measure this machine with this version; ratios within one run.",
)


@app.command
def engine(
    *,
    json: bool = False,
    tenants: int = 10_000,
    seconds: float = 10.0,
    burn_jobs: int = 300_000,
    shards: int | None = None,
    subscribed: bool = False,
) -> int:
    """Store alone, batches, single posts, a queue filled beforehand; all on this machine.

    Parameters
    ----------
    json
        Print one JSON object instead of a table.
    tenants
        Tenants with a 100-fold skew.
    seconds
        Length of each timed part.
    burn_jobs
        Jobs queued before the draining part.
    shards
        Shards of the platform, as FAIRWAY_SHARD_COUNT says them; the default if neither does.
    subscribed
        What the event log costs instead: every tenant subscribed, none, and tables without it.
    """
    if subscribed:
        from fairway.bench import subscribed as costs

        return costs.run(json_output=json, tenants=tenants, seconds=seconds, burn_jobs=burn_jobs)
    from fairway.bench import engine as command

    options = command.EngineOptions(tenants, seconds, burn_jobs, shards)
    return command.run(options, json_output=json)


@app.command
def fairness(*, json: bool = False, scale: float = 1.0, plots: Path | None = None) -> int:
    """Shares, waits and cost of fair sharing, by real runs through the front door.

    Exit status: 0 every figure is what it is to be, 1 one is not, 3 unjudged: the machine was busy
    with other things, or it was only a look.

    Parameters
    ----------
    json
        Print one JSON object instead of a table.
    scale
        Shortens (or lengthens) every part; below 0.5 the figures are only a look.
    plots
        A folder to draw the shares into (needs matplotlib).
    """
    from fairway.bench import fairness as command

    return command.run(json_output=json, scale=scale, plots=plots)


@app.command
def decisions(*, json: bool = False) -> int:
    """What one decision costs: with many tenants, and with limits over ten thousand keys.

    Parameters
    ----------
    json
        Print one JSON object instead of a table.
    """
    from fairway.bench import decisions as command

    return command.run(json_output=json)


@app.command
def herd(
    *, json: bool = False, jobs: int = 1_000_000, seconds: float = 20.0, per_second: int = 1500
) -> int:
    """A herd of jobs due at the same second: what others notice, and what a crash loses.

    Parameters
    ----------
    json
        Print one JSON object.
    jobs
        Jobs in the herd.
    seconds
        Length of each timed part.
    per_second
        The promoter's cap.
    """
    from fairway.bench import herd as command

    return command.run(json_output=json, jobs=jobs, seconds=seconds, per_second=per_second)


@app.command
def pools(*, json: bool = False, seconds: float = 20.0, per_second: float = 200.0) -> int:
    """Short jobs alone, and beside medium and long ones: do they notice?

    Parameters
    ----------
    json
        Print one JSON object.
    seconds
        Length of each turn; there are three of each kind.
    per_second
        Jobs a second, of all pools together.
    """
    from fairway.bench import pools as command

    return command.run(json_output=json, seconds=seconds, per_second=per_second)


@app.command
def depth(
    *, json: bool = False, tenants: int = 10_000, seconds: float = 10.0, jobs: int = 1_000_000
) -> int:
    """The same load with a shallow queue and with a deep one; and the server's memory.

    Parameters
    ----------
    json
        Print one JSON object.
    jobs
        How deep the deep queue is.
    """
    from fairway.bench import depth as command

    return command.run(json_output=json, tenants=tenants, seconds=seconds, jobs=jobs)


@app.command
def client(*, json: bool = False, seconds: float = 5.0) -> int:
    """What one process hands in through the SDK: 50 callers by asyncio, 50 threads, many a call.

    Parameters
    ----------
    json
        Print one JSON object instead of a table.
    seconds
        Length of each timed part.
    """
    from fairway.bench import client as command

    return command.run(json_output=json, seconds=seconds)


@app.command
def dashboards(
    *,
    json: bool = False,
    tenants: int = 10_000,
    jobs: int = 1_000_000,
    dashboards: int = 200,
    seconds: float = 20.0,
    turns: int = 3,
) -> int:
    """What open dashboards cost the engine before a deep queue, and how quick their pages are.

    Exit status: 0 every figure is what it is to be, 1 one is not, 3 unjudged: the machine was busy
    with other things, or there was less of anything than by default, so it was only a look.

    Parameters
    ----------
    json
        Print one JSON object instead of a table.
    tenants
        Tenants with a 100-fold skew.
    jobs
        How deep the queue is; with 20 000, `--tenants 500` and one turn it takes a minute.
    dashboards
        Dashboards that are open, each with its live stream.
    seconds
        Length of each timed part.
    turns
        Of each kind, with dashboards and without.
    """
    from fairway.bench.insight import dashboards as command

    options = command.DashboardOptions(tenants, jobs, dashboards, seconds, turns)
    return command.run(options, json_output=json)


@app.command
def shards(
    *,
    json: bool = False,
    tenants: int = 10_000,
    seconds: float = 1.0,
    slices: int = 80,
    burn_jobs: int = 60_000,
    shards: int = 64,
) -> int:
    """Jobs a second of one server with many shards, against one shard.

    Both are there all the time and measured in pairs of short slices, one right after the other: a
    machine that is slow for a while does not count. It takes ten minutes.

    Parameters
    ----------
    json
        Print one JSON object instead of a table.
    tenants
        Tenants with a 100-fold skew.
    seconds
        Length of a slice of batches, and of single jobs.
    slices
        Of each of them, on both; for five of them a queue is filled and drained, too.
    burn_jobs
        Jobs in that queue.
    shards
        How many are many.
    """
    from fairway.bench import shards as command

    options = command.ShardOptions(tenants, seconds, slices, burn_jobs, shards)
    return command.run(options, json_output=json)


@app.command
def processes(
    *,
    json: bool = False,
    tenants: int = 2000,
    seconds: float = 5.0,
    turns: int = 3,
    batches_per_second: int = 6000,
    singles_per_second: int = 800,
) -> int:
    """What a job costs in processor time with 1, 2 and 4 server processes, against one shard.

    Parameters
    ----------
    json
        Print one JSON object instead of a table.
    tenants
        Tenants with a 100-fold skew.
    seconds
        Length of each timed part: four of each kind in a turn.
    turns
        Of each kind.
    batches_per_second
        Jobs a second in batches of 100.
    singles_per_second
        Jobs a second, one a request.
    """
    from fairway.bench import processes as command

    options = command.ProcessOptions(
        tenants, seconds, turns, batches_per_second, singles_per_second
    )
    return command.run(options, json_output=json)


@app.command
def telemetry(
    *,
    json: bool = False,
    tenants: int = 1000,
    seconds: float = 15.0,
    turns: int = 5,
    ratio: float = 0.01,
) -> int:
    """What OpenTelemetry costs the engine: traces, metrics and lines sent, against all of it off.

    Exit status: 0 every figure is what it is to be, 1 one is not, 3 unjudged: the machine was busy
    with other things, or it was too short.

    Parameters
    ----------
    json
        Print one JSON object instead of a table.
    tenants
        Tenants with a 100-fold skew.
    seconds
        Length of each timed part.
    turns
        Of each kind, with telemetry and without.
    ratio
        Of jobs that have a trace.
    """
    from fairway.bench.insight import telemetry as command

    options = command.TelemetryOptions(tenants, seconds, turns, ratio)
    return command.run(options, json_output=json)
