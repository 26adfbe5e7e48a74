"""`fairway bench processes`: what a job costs in processor time, by processes and shards.

    1 process and 1 shard, then 1, 2 and 4 processes with 64 shards, in turns: batches of 100, and
    one job a request; each on connections that speak for all tenants, as a gateway's do (`batch`,
    `single`), and on connections that speak for one each, as producers' do (`batch_own`,
    `single_own`). Of each the processor time a job of servers, worker and PostgreSQL, apart and
    together, and the sum as a ratio to one process with one shard. As few processes own shards as
    the work needs, unless `FAIRWAY_CONSOLIDATE_PROCESSES=false` is in the environment.

Each kind has a platform of its own; all are there during the whole run and take turns, so that they
meet the same moments of the machine. Jobs come at the same rate everywhere, for who has more to do
gathers more in a statement; what the load costs itself is not counted. `/metrics` of several
processes asks each of them, so it is looked at once a second only. Where `jobs_per_s` is far below
what was asked for, the machine was too busy: compare within one run, at a lower rate. All
connections have carried a few requests before the time is taken: producers and gateways keep them.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from itertools import islice, repeat
from typing import NamedTuple

from fairway.bench import output
from fairway.bench.engine import (
    BACKLOG_MAX,
    BATCH,
    SLOTS,
    Requests,
    Watch,
    batch_requests,
    one_batch,
    one_job,
    single_requests,
)
from fairway.bench.output import Aim, part
from fairway.bench.platform import BenchPlatform, bench_platform
from fairway.core.ownership.connection_moves import PASSED_ON_MIN
from fairway.rig.load import Tally, closed_loops
from fairway.rig.load_client import LoadConnection
from fairway.rig.usage import run_seconds

RATIO_MAX = 1.15
LOADS = ("batch", "single", "batch_own", "single_own")
PARTS = ("server", "worker", "postgres")
CONNECTIONS = 64  # more than are ever needed: they come as they are due
OWN_CONNECTIONS = 32  # one for each of so many tenants
REQUESTS_BEFORE = PASSED_ON_MIN + 2  # on each connection, before the time is taken
LOOK_SECONDS = 1.0
WARM_SECONDS = 2.0


Source = tuple[LoadConnection, Requests]


class Kind(NamedTuple):
    processes: int
    shards: int

    @property
    def name(self) -> str:
        return f"{self.processes}p_{self.shards}s"


KINDS = (Kind(1, 1), Kind(1, 64), Kind(2, 64), Kind(4, 64))


class ProcessOptions(NamedTuple):
    tenants: int
    seconds: float  # of each timed part
    turns: int
    batches_per_second: int  # jobs in batches
    singles_per_second: int


class Load(NamedTuple):
    name: str
    sources: Callable[[BenchPlatform], list[Requests]]  # one for each connection
    jobs: int  # of one request
    per_second: float  # jobs; the same for every kind


def for_all(requests: Callable[[BenchPlatform], Requests]) -> Callable[..., list[Requests]]:
    """Every connection speaks for all tenants."""
    return lambda platform: [requests(platform)] * CONNECTIONS


def for_one(request: Callable[[str], bytes], jobs: int) -> Callable[..., list[Requests]]:
    """Every connection speaks for a tenant of its own, busy ones and quiet ones."""

    def sources(platform: BenchPlatform) -> list[Requests]:
        step = max(1, len(platform.keys) // OWN_CONNECTIONS)
        return [repeat((request(key), jobs)) for key in platform.keys[::step][:OWN_CONNECTIONS]]

    return sources


def loads_of(options: ProcessOptions) -> tuple[Load, ...]:
    batches, singles = options.batches_per_second, options.singles_per_second
    own_batches, own_singles = for_one(one_batch, BATCH), for_one(one_job, 1)
    return (
        Load("batch", for_all(batch_requests), BATCH, batches),
        Load("single", for_all(single_requests), 1, singles),
        Load("batch_own", own_batches, BATCH, batches),
        Load("single_own", own_singles, 1, singles),
    )


class Cost(NamedTuple):
    """Of one timed part: microseconds of processor time a job, by part; and how many came."""

    us: dict[str, float]
    per_second: float


class Measured(NamedTuple):
    """A platform that is there, and its programs by part."""

    kind: Kind
    platform: BenchPlatform
    pids: dict[str, int]


def run(options: ProcessOptions, *, json_output: bool) -> int:
    figures = output.measured(measure(options))
    if json_output:
        output.show(figures, json_output=True)
    else:
        output.show_table("Processor time a job, in microseconds", figures, AIMS)
    return 0


async def measure(options: ProcessOptions) -> dict[str, float]:
    loads = loads_of(options)
    costs: Costs = {}
    async with AsyncExitStack() as platforms:
        there = [await _started(kind, options.tenants, loads, platforms) for kind in KINDS]
        for turn in range(options.turns):
            for one in there if turn % 2 == 0 else reversed(there):
                with part(f"turn {turn + 1} of {options.turns}, {one.kind.name}"):
                    for load in loads:
                        spent = await _cost(one, load, options.seconds)
                        costs.setdefault((one.kind.name, load.name), []).append(spent)
    return figures_of(costs)


async def _started(
    kind: Kind, tenants: int, loads: Sequence[Load], platforms: AsyncExitStack
) -> Measured:
    with part(f"starting {kind.name}"):
        platform = await platforms.enter_async_context(bench_platform(tenants, kind.shards))
        pids = dict(zip(PARTS[2:], platform.programs.pids, strict=True))
        server = await platform.start_server({"FAIRWAY_SERVER_PROCESSES": str(kind.processes)})
        if kind.processes > 1:
            await server.says("servers ready")
        worker = await platform.start_worker(SLOTS)
        await worker.says("worker ready")
        one = Measured(kind, platform, {"server": server.pid, "worker": worker.pid, **pids})
        for load in loads:
            await _cost(one, load, WARM_SECONDS)  # plans are made, shards are shared out
        return one


async def _cost(one: Measured, load: Load, seconds: float) -> Cost:
    """Microseconds of processor time a job that was recorded, by part."""
    client, requests = one.platform.client(), load.sources(one.platform)
    opened = await asyncio.gather(*(client.connect() for _ in requests))
    try:
        sources = list(zip(opened, requests, strict=True))
        await _begin(one, sources)
        return await _timed(one, load, seconds, sources)
    finally:
        for connection in opened:
            connection.close()


async def _begin(one: Measured, sources: Sequence[Source]) -> None:
    """What was sent before the time is taken is done when it is."""
    watch = Watch(one.platform)
    await watch.look()
    done = watch.done

    tally = Tally()

    async def send(connection: LoadConnection, requests: Requests) -> None:
        for request, jobs in islice(requests, REQUESTS_BEFORE):
            status, *_ = await connection.send(request)
            tally.add(status, jobs, 0.0)

    await asyncio.gather(*(send(*source) for source in sources))
    await watch.settle(done + tally.jobs)


async def _timed(one: Measured, load: Load, seconds: float, sources: Sequence[Source]) -> Cost:
    watch = Watch(one.platform)
    await watch.look()
    done, before = watch.done, {name: run_seconds(pid) for name, pid in one.pids.items()}
    following = asyncio.create_task(_follow(watch))
    began = time.perf_counter()
    sent = 0

    def may_go(tally: Tally) -> bool:
        """One request whenever one is due: they do not come in herds."""
        nonlocal sent
        is_due = sent * load.jobs < (time.perf_counter() - began) * load.per_second
        is_due = is_due and tally.jobs - (watch.done - done) < BACKLOG_MAX
        sent += is_due
        return is_due

    try:
        tally = await closed_loops(
            sources, may_go=may_go, is_over=lambda tally: time.perf_counter() > began + seconds
        )
    finally:
        following.cancel()
    ended = time.perf_counter()
    await watch.settle(done + tally.jobs)
    spent = {name: run_seconds(pid) - before[name] for name, pid in one.pids.items()}
    return Cost(
        {name: used * 1e6 / tally.jobs for name, used in spent.items()},
        tally.jobs / (ended - began),
    )


async def _follow(watch: Watch) -> None:
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        await watch.look()


# -- figures -----------------------------------------------------------------------------------


Costs = dict[tuple[str, str], list[Cost]]  # by kind and load, one a turn


def figures_of(costs: Costs) -> dict[str, float]:
    """Medians over the turns; of ratios the median of each turn's own."""
    first = KINDS[0].name
    figures: dict[str, float] = {}
    for load in LOADS:
        for kind in KINDS:
            turns = costs[kind.name, load]
            for name in PARTS:
                median = statistics.median(turn.us[name] for turn in turns)
                figures[f"{load}_{kind.name}_{name}_us"] = round(median, 1)
            whole = [sum(turn.us.values()) for turn in turns]
            figures[f"{load}_{kind.name}_us"] = round(statistics.median(whole), 1)
            rate = statistics.median(turn.per_second for turn in turns)
            figures[f"{load}_{kind.name}_jobs_per_s"] = round(rate)
            if kind.name != first:
                figures[f"{load}_{kind.name}_ratio"] = ratio(whole, costs[first, load])
    return figures


def ratio(whole: Sequence[float], firsts: Sequence[Cost]) -> float:
    pairs = zip(whole, firsts, strict=True)
    return round(statistics.median(own / sum(first.us.values()) for own, first in pairs), 3)


AIMS = {
    f"{load}_{kind.name}_ratio": Aim(f"≤ {RATIO_MAX}", lambda v: v <= RATIO_MAX)
    for load in LOADS
    for kind in KINDS[1:]
}
