"""`fairway bench telemetry`: what OpenTelemetry costs the engine.

    telemetry_ratio    jobs recorded a second with traces (one job in a hundred), metrics and lines
                       sent by OTLP, as a part of those with all of it off
    processor_ratio    the same of jobs for each second of processor time that server, PostgreSQL
                       and worker use, with what sends in them; not the receiver
    requests_received  by the collector, in all turns
    …_us_a_job         processor time by program, off and `_on`

On and off take turns, each with a server and a worker of its own on one PostgreSQL, so that a slow
moment of the machine meets both; the ratio is the median of the turns'. The receiver is another
process, and takes everything. It judges itself, as `fairway bench dashboards` does.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fairway.bench import engine, output
from fairway.bench.insight.processor_time import Spent, spent
from fairway.bench.output import Aim, part
from fairway.bench.platform import BenchPlatform, bench_platform
from fairway.rig import foreign_load
from fairway.rig.load_client import LoadClient
from fairway.rig.program import free_port

SECONDS_MIN, TURNS_MIN = 10.0, 3  # of a run that is judged
READY = "worker ready"  # what it loads is not measured
COLLECTOR = "fairway.bench.insight.collector"
METRICS_MS = 5000  # each turn is to have some; by default it is a minute


class TelemetryOptions(NamedTuple):
    tenants: int
    seconds: float
    turns: int
    ratio: float


def run(options: TelemetryOptions, *, json_output: bool) -> int:
    before = foreign_load.look()
    figures = output.measured(measure(options))
    load = foreign_load.foreign_load(foreign_load.passed(before, foreign_load.look()))
    is_short = options.seconds < SECONDS_MIN or options.turns < TURNS_MIN
    doubts = [*foreign_load.doubts(load), *(["so short it was only a look"] if is_short else [])]
    title = "OpenTelemetry, all parts on this machine's cores"
    return output.show_judged(title, figures, AIMS, doubts, json_output=json_output)


async def measure(options: TelemetryOptions) -> dict[str, float]:
    turns: dict[bool, list[Spent]] = {False: [], True: []}
    async with bench_platform(options.tenants) as platform:
        port = free_port()
        await platform.programs.start("collector", COLLECTOR, str(port))
        for turn in range(-1, options.turns):  # the first warms up
            for is_on in (False, True) if turn % 2 else (True, False):
                settings = _settings(port, options) if is_on else {}
                with part(f"turn {turn + 1} of {options.turns}, {'on' if is_on else 'off'}"):
                    used = await _turn(platform, settings, options)
                turns[is_on] += [used] if turn >= 0 else []
        client = LoadClient(f"http://127.0.0.1:{port}")
        received = int((await client.ask("GET", "/")).body)
        client.close()
    return _figures(turns) | {"requests_received": received}


def _settings(port: int, options: TelemetryOptions) -> dict[str, str]:
    return {
        "FAIRWAY_OTEL": "true",
        "FAIRWAY_OTEL_TRACE_RATIO": f"{options.ratio:g}",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
        "OTEL_METRIC_EXPORT_INTERVAL": str(METRICS_MS),
    }


async def _turn(
    platform: BenchPlatform, settings: Mapping[str, str], options: TelemetryOptions
) -> Spent:
    server = await platform.start_server(settings)
    worker = await platform.start_worker(engine.SLOTS, **settings)
    await worker.says(READY)
    pids = {"postgres": platform.programs.pids[0], "server": server.pid, "worker": worker.pid}
    try:
        used, _ = await asyncio.gather(
            spent(platform, pids, engine.WARM_SECONDS, options.seconds),
            engine.batches(platform, options.seconds),
        )
    finally:
        await worker.stop()
        await server.stop()
    return used


# -- figures -------------------------------------------------------------------------------------


def _figures(turns: Mapping[bool, list[Spent]]) -> dict[str, float]:
    pairs = list(zip(turns[True], turns[False], strict=True))
    return {
        "telemetry_ratio": _median(on.jobs_per_second / off.jobs_per_second for on, off in pairs),
        "processor_ratio": _median(off.us_a_job / on.us_a_job for on, off in pairs),
        "jobs_per_s": _median(one.jobs_per_second for one in turns[False]),
        **{
            f"{name}_us_a_job{words}": _median(one.us_a_job_of(name) for one in turns[is_on])
            for name in turns[False][0].processor_seconds
            for is_on, words in ((False, ""), (True, "_on"))
        },
    }


def _median(values: Iterable[float]) -> float:
    return round(statistics.median(values), 3)


AIMS = {
    "telemetry_ratio": Aim("≥ 0.97", lambda v: v >= 0.97),
    "requests_received": Aim("> 0", lambda v: v > 0),
}
