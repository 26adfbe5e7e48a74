"""`fairway bench dashboards`: do many open dashboards cost the engine anything, and are they quick?

    dashboards_ratio     jobs recorded a second with so many dashboards open, as a part of those
                         with none: batches and a deep queue keep the engine as busy as it can be
    …_p95_ms             how long the data of a page takes before that queue while jobs come at half
                         that rate and nobody runs them
    slowest_busy_p95_ms  the slowest page's while the engine is as busy as it can be: on a machine
                         without a core to spare, whoever asks then waits for its turn

Each dashboard has its live stream open and asks for one page's data every five seconds. With and
without take turns, so that a slow moment of the machine meets both; the ratio is the
median of the turns'. Who looks is another process than who loads.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from multiprocessing import get_context
from typing import NamedTuple

from fairway.bench import engine, output
from fairway.bench.output import Aim, part
from fairway.bench.platform import BenchPlatform, bench_platform
from fairway.rig.load import closed_loop
from fairway.rig.load_client import LoadClient, LoadConnection, request
from fairway.rig.quantile import quantile
from fairway.runtime.told_to_end import run as run_loop

ASK_SECONDS = 5.0
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


class View(NamedTuple):
    url: str
    key: str
    tenant: str
    job: str
    dashboards: int
    seconds: float

    def requests(self) -> dict[str, bytes]:
        names = {"tenant": self.tenant, "job": self.job}
        own = {"fairway-tenant": self.tenant}
        plain = {
            page: request("GET", path.format(**names), self.key, b"", {})
            for page, path in PAGES.items()
        }
        return plain | {
            page: request("GET", path.format(**names), self.key, b"", own)
            for page, path in OWN_PAGES.items()
        }


class Options(NamedTuple):
    tenants: int
    jobs: int
    dashboards: int
    seconds: float
    turns: int


def run(options: Options, *, json_output: bool) -> int:
    figures = output.measured(measure(options))
    if json_output:
        output.show(figures, json_output=True)
    else:
        output.show_table("Open dashboards, all parts on this machine's cores", figures, AIMS)
    return 0


async def measure(options: Options) -> dict[str, float]:
    rates: dict[bool, list[float]] = {False: [], True: []}
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
                        rate, met = await _turn(
                            platform, view if is_open else None, options, lookers
                        )
                    rates[is_open].append(rate)
                    busy += [] if met is None else [met]
            with part("pages at half load"):
                view = await _view(platform, options)
                at_half = await _half_load(
                    platform, view, statistics.median(rates[False]) / 2, lookers
                )
    return _figures(rates, busy, at_half)


async def _view(platform: BenchPlatform, options: Options) -> View:
    """Before a queue that is as deep as it is to be; the busiest tenant is looked at."""
    queued = await platform.metric("fairway_jobs_queued")
    await engine.fill(platform, max(options.jobs - round(queued), 0))
    reply = await platform.client(platform.keys[0]).send_json(
        "POST", "/v1/jobs", {"type": "bench.noop", "payload": {"n": 1}}
    )
    job = json.loads(reply.body)["id"]
    seconds = engine.WARM_SECONDS + options.seconds
    key = platform.operator_key
    return View(platform.url, key, "tenant-0", job, options.dashboards, seconds)


async def _turn(
    platform: BenchPlatform, view: View | None, options: Options, lookers: ProcessPoolExecutor
) -> tuple[float, Seen | None]:
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(lookers, int)  # it is there
    worker = await platform.start_worker(engine.SLOTS)
    looking = None if view is None else loop.run_in_executor(lookers, look, view)
    rate, _ = await engine.lifecycle(
        platform,
        engine.batch_requests(platform),
        options.seconds,
        connections=16,
        backlog_max=BACKLOG_MAX,
        settle=False,
    )
    met = None if looking is None else await looking
    await worker.stop()
    return rate, met


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
    client, pieces = LoadClient(view.url, view.key), count()
    streams = [await _stream(client, view.key, pieces) for _ in range(view.dashboards)]
    took: dict[str, list[float]] = {page: [] for page in view.requests()}
    try:
        async with asyncio.TaskGroup() as asking:
            requests = list(view.requests().items())
            warm = [asking.create_task(_ask(client, text, page, [])) for page, text in requests]
            await asyncio.gather(*warm, asyncio.sleep(engine.WARM_SECONDS))
            seconds = view.seconds - engine.WARM_SECONDS
            asks = max(round(seconds * view.dashboards / ASK_SECONDS), len(requests))
            for number in range(asks):
                page, text = requests[number % len(requests)]
                asking.create_task(_ask(client, text, page, took[page]))
                await asyncio.sleep(seconds / asks)
        if not all(stream.is_open for stream in streams):
            raise RuntimeError("a live stream ended")
    finally:
        for stream in streams:
            stream.close()
        client.close()
    return Seen(took, next(pieces))


async def _stream(client: LoadClient, key: str, pieces: count[int]) -> LoadConnection:
    stream = await client.connect()
    stream.on_piece = lambda _: (next(pieces), None)[1]
    ended = stream.send(request("GET", "/v1/live", key, b"", {"accept": "text/event-stream"}))
    ended.add_done_callback(lambda one: one.cancelled() or one.exception())
    return stream


async def _ask(client: LoadClient, text: bytes, page: str, took: list[float]) -> None:
    began = time.perf_counter()
    reply = await client.send(text)
    if reply.status != 200:
        raise RuntimeError(f"the data of {page}: {reply.status} {reply.body[:300]!r}")
    took.append(time.perf_counter() - began)


# -- figures -------------------------------------------------------------------------------------


def _figures(
    rates: dict[bool, list[float]], busy: Sequence[Seen], at_half: Seen
) -> dict[str, float]:
    ratio = statistics.median(a / b for a, b in zip(rates[True], rates[False], strict=True))
    p95 = _p95_ms([at_half])
    return {
        "dashboards_ratio": round(ratio, 3),
        "slowest_p95_ms": max(p95.values()),
        "slowest_busy_p95_ms": max(_p95_ms(busy).values()),
        "jobs_per_s": round(statistics.median(rates[False])),
        "live_events": sum(one.events for one in (*busy, at_half)),
        **p95,
    }


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
}
