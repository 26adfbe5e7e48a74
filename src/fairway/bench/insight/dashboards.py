"""`fairway bench dashboards`: do many open dashboards cost the engine anything, and are they quick?

    dashboards_ratio     jobs recorded a second with so many dashboards open, as a part of those
                         with none: batches and a deep queue keep the engine as busy as it can be
    processor_ratio      the same of jobs for each second of processor time that server, PostgreSQL
                         and worker use: what others on this machine do hardly changes it
    …_p95_ms             how long the data of a page takes before that queue while jobs come at half
                         that rate and nobody runs them
    slowest_busy_p95_ms  the slowest page's while the engine is as busy as it can be: on a machine
                         without a core to spare, whoever asks then waits for its turn

Each dashboard has its live stream open and asks for one page's data every five seconds, as the web
app does: a reply that is a moment old will do. A few tenants are looked at. With and
without take turns, so that a slow moment of the machine meets both; the ratio is the
median of the turns'. Who looks is another process than who loads. It judges itself: a run on a
machine that was busy with other things counts for nothing.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from multiprocessing import get_context
from typing import NamedTuple

from fairway.bench import engine, output
from fairway.bench.insight.processor_time import Spent, spent
from fairway.bench.output import Aim, part
from fairway.bench.platform import BenchPlatform, bench_platform
from fairway.rig import foreign_load
from fairway.rig.load import closed_loop
from fairway.rig.load_client import LoadClient, LoadConnection, request
from fairway.rig.quantile import quantile
from fairway.runtime.told_to_end import run as run_loop

READY = "worker ready"  # what it loads is not measured
ASK_SECONDS = 5.0
AGAIN = {"cache-control": "max-age=4"}  # as pages say that ask again
LOOKED_AT = 4  # tenants
JOBS_MIN, TENANTS_MIN, DASHBOARDS_MIN = 1_000_000, 10_000, 200  # of a run that is judged
BACKLOG_MAX = 10_000
#: By page, what it asks for; what is a tenant's own is asked for in its name.
PAGES = {
    "overview": "/v1/overview",
    "history": "/v1/history?of=pool&name=short",
    "pools": "/v1/pools",
    "workers": "/v1/workers",
    "shares": "/v1/shares",
    "tenants": "/v1/tenants?limit=50",
    "tenant": "/v1/tenants/{tenant}",
    "tenant_share": "/v1/shares?tenant={tenant}",
    "tenant_limits": "/v1/tenants/{tenant}/limits",
    "tenant_history": "/v1/history?of=tenant&name={tenant}",
    "usage": "/v1/usage?tenant={tenant}",
    "restraints": "/v1/pauses",
    "alarms": "/v1/alarms",
    "audit": "/v1/audit?limit=50",
}
OWN_PAGES = {
    "jobs": "/v1/jobs?limit=50",
    "queued_jobs": "/v1/jobs?state=queued&limit=50",
    "job": "/v1/jobs/{job}",
    "why": "/v1/jobs/{job}/explain",
    "failures": "/v1/dead-letters/groups",
    "dead_letters": "/v1/dead-letters?limit=50",
    "schedules": "/v1/schedules",
    "limits": "/v1/limits",
    "webhooks": "/v1/webhooks",
    "bulk_actions": "/v1/bulk-actions",
}


class Seen(NamedTuple):
    """What those who looked met."""

    seconds: dict[str, list[float]]  # by page
    events: int  # that came by all streams
    refused: int  # asks: the server had no room for them


class View(NamedTuple):
    url: str
    key: str
    jobs: dict[str, str]  # of each tenant that is looked at, one of its jobs
    dashboards: int
    seconds: float

    def requests(self) -> list[tuple[str, bytes]]:
        """Every page, of one tenant after the other."""
        return [
            (page, request("GET", path.format(tenant=tenant, job=job), self.key, b"", said))
            for tenant, job in self.jobs.items()
            for pages, said in ((PAGES, AGAIN), (OWN_PAGES, AGAIN | {"fairway-tenant": tenant}))
            for page, path in pages.items()
        ]


class DashboardOptions(NamedTuple):
    tenants: int
    jobs: int
    dashboards: int
    seconds: float
    turns: int


def run(options: DashboardOptions, *, json_output: bool) -> int:
    before = foreign_load.look()
    figures = output.measured(measure(options))
    load = foreign_load.foreign_load(foreign_load.passed(before, foreign_load.look()))
    doubts = [*foreign_load.doubts(load), *_too_small(options)]
    title = "Open dashboards, all parts on this machine's cores"
    return output.show_judged(title, figures, AIMS, doubts, json_output=json_output)


def _too_small(options: DashboardOptions) -> list[str]:
    least = {"jobs": JOBS_MIN, "tenants": TENANTS_MIN, "dashboards": DASHBOARDS_MIN}
    small = [name for name, count in least.items() if getattr(options, name) < count]
    return [f"with so few {' and '.join(small)} it was only a look"] if small else []


async def measure(options: DashboardOptions) -> dict[str, float]:
    turns: dict[bool, list[Spent]] = {False: [], True: []}
    busy: list[Seen] = []
    async with bench_platform(options.tenants) as platform:
        await platform.start_server()
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as lookers:
            with part("warming up"):
                await _view(platform, options)
                await _turn(platform, None, options, lookers)
            for turn in range(options.turns):
                for is_open in (False, True) if turn % 2 else (True, False):
                    who = options.dashboards if is_open else "no"
                    with part(f"turn {turn + 1} of {options.turns}, {who} dashboards"):
                        view = await _view(platform, options)
                        used, met = await _turn(
                            platform, view if is_open else None, options, lookers
                        )
                    turns[is_open].append(used)
                    busy += [] if met is None else [met]
            with part("pages at half load"):
                view = await _view(platform, options)
                half = statistics.median(one.jobs_per_second for one in turns[False]) / 2
                at_half = await _half_load(platform, view, half, lookers)
    return _figures(turns, busy, at_half)


async def _view(platform: BenchPlatform, options: DashboardOptions) -> View:
    """Before a queue that is as deep as it is to be; the busiest tenants are looked at."""
    queued = await platform.metric("fairway_jobs_queued")
    await engine.fill(platform, max(options.jobs - round(queued), 0))
    jobs = {}
    for number, key in enumerate(platform.keys[:LOOKED_AT]):
        reply = await platform.client(key).send_json(
            "POST", "/v1/jobs", {"type": "bench.noop", "payload": {"n": 1}}
        )
        jobs[f"tenant-{number}"] = json.loads(reply.body)["id"]
    seconds = engine.WARM_SECONDS + options.seconds
    return View(platform.url, platform.operator_key, jobs, options.dashboards, seconds)


async def _turn(
    platform: BenchPlatform,
    view: View | None,
    options: DashboardOptions,
    lookers: ProcessPoolExecutor,
) -> tuple[Spent, Seen | None]:
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(lookers, int)  # it is there
    worker = await platform.start_worker(engine.SLOTS)
    await worker.says(READY)
    looking = None if view is None else loop.run_in_executor(lookers, look, view)
    postgres, server, *_ = platform.programs.pids
    pids = {"postgres": postgres, "server": server, "worker": worker.pid}
    used, _ = await asyncio.gather(
        spent(platform, pids, engine.WARM_SECONDS, options.seconds),
        engine.lifecycle(
            platform,
            engine.batch_requests(platform),
            options.seconds,
            engine.Pressure(16, BACKLOG_MAX, settle=False),
        ),
    )
    met = None if looking is None else await looking
    await worker.stop()
    return used, met


async def _half_load(
    platform: BenchPlatform, view: View, per_second: float, lookers: ProcessPoolExecutor
) -> Seen:
    looking = asyncio.get_running_loop().run_in_executor(lookers, look, view)
    began = time.perf_counter()
    await closed_loop(
        platform.client(),
        engine.batch_requests(platform),
        connections=8,
        may_go=lambda tally: tally.jobs < per_second * (time.perf_counter() - began),
        is_over=lambda _: looking.done(),
    )
    return await looking


# -- who looks, in a process of their own ----------------------------------------------------------


def look(view: View) -> Seen:
    return run_loop(_look(view))


async def _look(view: View) -> Seen:
    client, pieces, refusals = LoadClient(view.url, view.key), count(), count()
    streams = [await _stream(client, view.key, pieces) for _ in range(view.dashboards)]
    requests = view.requests()
    took: dict[str, list[float]] = {page: [] for page, _ in requests}
    try:
        async with asyncio.TaskGroup() as asking:
            for page, text in requests:
                asking.create_task(_ask(client, text, page, [], refusals))
                await asyncio.sleep(engine.WARM_SECONDS / len(requests))
            seconds = view.seconds - engine.WARM_SECONDS
            asks = max(round(seconds * view.dashboards / ASK_SECONDS), len(requests))
            for number in range(asks):
                page, text = requests[number % len(requests)]
                asking.create_task(_ask(client, text, page, took[page], refusals))
                await asyncio.sleep(seconds / asks)
        if not all(stream.is_open for stream in streams):
            raise RuntimeError("a live stream ended")
    finally:
        for stream in streams:
            stream.close()
        client.close()
    return Seen(took, next(pieces), next(refusals))


async def _stream(client: LoadClient, key: str, pieces: count[int]) -> LoadConnection:
    stream = await client.connect()
    stream.on_piece = lambda _: (next(pieces), None)[1]
    ended = stream.send(request("GET", "/v1/live", key, b"", {"accept": "text/event-stream"}))
    ended.add_done_callback(lambda one: one.cancelled() or one.exception())
    return stream


async def _ask(
    client: LoadClient, text: bytes, page: str, took: list[float], refusals: count[int]
) -> None:
    began = time.perf_counter()
    reply = await client.send(text)
    if reply.status == 503:  # the page keeps what it has and asks again
        next(refusals)
    elif reply.status != 200:
        raise RuntimeError(f"the data of {page}: {reply.status} {reply.body[:300]!r}")
    else:
        took.append(time.perf_counter() - began)


# -- figures -------------------------------------------------------------------------------------


def _figures(
    turns: dict[bool, list[Spent]], busy: Sequence[Seen], at_half: Seen
) -> dict[str, float]:
    pairs = list(zip(turns[True], turns[False], strict=True))
    p95 = _p95_ms([at_half])
    return {
        "dashboards_ratio": _median(a.jobs_per_second / b.jobs_per_second for a, b in pairs),
        "slowest_p95_ms": max(p95.values()),
        "slowest_busy_p95_ms": max(_p95_ms(busy).values()),
        "processor_ratio": _median(b.us_a_job / a.us_a_job for a, b in pairs),
        "jobs_per_s": _median(one.jobs_per_second for one in turns[False]),
        **{
            f"{name}_us_a_job{words}": _median(one.us_a_job_of(name) for one in turns[is_open])
            for name in turns[False][0].processor_seconds
            for is_open, words in ((False, ""), (True, "_open"))
        },
        "refused": at_half.refused,
        "refused_busy": sum(one.refused for one in busy),
        "live_events": sum(one.events for one in (*busy, at_half)),
        **p95,
    }


def _median(values: Iterable[float]) -> float:
    return round(statistics.median(values), 3)


def _p95_ms(seen: Sequence[Seen]) -> dict[str, float]:
    return {
        f"{page}_p95_ms": round(
            quantile([s for one in seen for s in one.seconds[page]], 0.95) * 1e3, 1
        )
        for page in PAGES | OWN_PAGES
    }


AIMS = {
    "dashboards_ratio": Aim("≥ 0.95", lambda v: v >= 0.95),
    "slowest_p95_ms": Aim("< 200", lambda v: v < 200),
    "refused": Aim("0", lambda v: v == 0),
}
