"""What the clients experiment says: how far each way of waiting goes, and its price."""

from __future__ import annotations

from typing import Any, NamedTuple

from fairway.lab.report.content import Drawing, Finding, Report, Table, number, seconds
from fairway.lab.report.plots import SERIES, from_zero, plain_log

P95_SECONDS = 0.07
REQUESTS_AIM = 3000
NAMES = {"poll": "GET each second", "head": "HEAD with ETag", "sse": "server-sent events"}


class CrowdReading(NamedTuple):
    way: str
    clients: int
    per_second: float
    p50: float
    p95: float
    refused: int
    platform_cores: float  # processor time of server, PostgreSQL and worker, per second
    generator_cores: float
    notice_p50: float  # from a job's end to its owner's knowing
    behind: list[str]

    @property
    def is_good(self) -> bool:
        return not self.behind and self.p95 < P95_SECONDS and not self.refused


class Run(NamedTuple):
    way: str
    readings: list[CrowdReading]
    stopped_by: str
    errors: list[str]

    @property
    def best(self) -> CrowdReading | None:
        """The reading with the most clients that were still served well."""
        return max((r for r in self.readings if r.is_good), key=lambda r: r.clients, default=None)

    def near(self, clients: int) -> CrowdReading:
        return min(self.readings, key=lambda reading: abs(reading.clients - clients))


def report(speed: float, job_seconds: float, runs: list[Run]) -> Report:
    most = max((one.best.per_second for one in runs if one.best), default=0.0)
    shared = min((run.best.clients for run in runs if run.best), default=0)
    lines = [
        f"{NAMES[run.way]}: {run.best.clients:,} clients" for run in runs if run.best is not None
    ]
    return Report(
        name="clients",
        title="Three ways to wait",
        question="People hand in three jobs each and want to know when they are done. How many can"
        " wait at once on this machine, and what does each way of waiting cost?",
        found=f"Served with p95 under 70 ms: {'; '.join(lines) or 'nobody'}.",
        answer=f"The most was {most:,.0f} requests a second.",
        data={
            "experiment": "clients",
            "requests_per_s": most,
            "runs": [_data(run, shared) for run in runs],
            "compared_at_clients": shared,
            "job_s": job_seconds,
            "speed": speed,
        },
        findings=_findings(most, runs),
        drawings=[
            Drawing(
                "clients",
                "By size of the crowd: requests a second, p95 from the intended"
                " moment (dashed: 70 ms), and processor time of the platform.",
                lambda figure: _draw(figure, runs),
                (9.8, 3.6),
            ),
        ],
        tables=[_table(runs), _compared(runs, shared)],
        notes=[
            "Load, platform and PostgreSQL share the machine; the generator's own share is in the"
            " table.",
            f"Each client hands in three jobs of {job_seconds:g} s and starts over when all are"
            " done. Streams cost no requests while they wait, so their requests a second are few.",
            *([f"The crowd grew {speed:g} times faster than one a second."] if speed != 1 else []),
            *(f"{NAMES[run.way]} ended because {run.stopped_by}." for run in runs),
        ],
        doubts=[f"{NAMES[r.way]}: no reading held" for r in runs if r.best is None]
        + [
            f"{NAMES[r.way]}: {len(r.errors)} broken connections, first {r.errors[0]}"
            for r in runs
            if r.errors
        ]
        + outrun(runs, most),
    )


def outrun(runs: list[Run], most: float) -> list[str]:
    """Ways that ended for want of a generator, before the aim was reached: no figure of ours."""
    return [
        f"{NAMES[run.way]} ended because {run.stopped_by}; the aim was not reached before that"
        for run in runs
        if most < REQUESTS_AIM and any(reading.behind for reading in run.readings)
    ]


def _findings(most: float, runs: list[Run]) -> list[Finding]:
    return [
        Finding(
            "requests a second, p95 < 70 ms",
            number(most, "/s"),
            f"≥ {REQUESTS_AIM:,}/s",
            most >= REQUESTS_AIM,
        ),
        *(
            Finding(
                NAMES[run.way],
                f"{run.best.clients:,} clients" if run.best else "–",
                f"p95 {seconds(run.best.p95)}" if run.best else "",
            )
            for run in runs
        ),
    ]


def _data(run: Run, shared: int) -> dict[str, Any]:
    at = run.near(shared)
    return {
        "way": run.way,
        "clients": run.best.clients if run.best else 0,
        "requests_per_s": run.best.per_second if run.best else 0,
        "p50_ms": run.best.p50 * 1000 if run.best else None,
        "p95_ms": run.best.p95 * 1000 if run.best else None,
        "cpu_ms_per_client_s": at.platform_cores * 1000 / max(1, at.clients),
        "notice_p50_ms": at.notice_p50 * 1000,
        "stopped_by": run.stopped_by,
        "readings": [reading._asdict() for reading in run.readings],
    }


def _table(runs: list[Run]) -> Table:
    rows = [
        [
            NAMES[run.way],
            f"{best.clients:,}",
            number(best.per_second, "/s"),
            seconds(best.p50),
            seconds(best.p95),
            f"{best.platform_cores:.2f}",
            f"{best.generator_cores:.2f}",
        ]
        for run in runs
        if (best := run.best) is not None
    ]
    head = ["way", "clients", "requests", "p50", "p95", "platform's cores", "generator's cores"]
    return Table("The largest crowd that was served well", head, rows)


def _compared(runs: list[Run], shared: int) -> Table:
    rows = [
        [
            NAMES[run.way],
            f"{at.clients:,}",
            f"{at.platform_cores * 1000 / max(1, at.clients):.2f} ms",
            number(at.per_second / max(1, at.clients), "/s"),
            seconds(at.notice_p50),
        ]
        for run in runs
        for at in [run.near(shared)]
    ]
    head = [
        "way",
        "clients",
        "CPU per client and second",
        "requests per client",
        "knows after (p50)",
    ]
    return Table("The same crowd, three ways: what waiting costs", head, rows)


def _draw(figure: Any, runs: list[Run]) -> None:
    requests, waits, cores = figure.subplots(1, 3)
    for run, colour in zip(runs, SERIES, strict=False):
        at = [reading.clients for reading in run.readings]
        shown = {"color": colour, "linewidth": 1.7}
        requests.plot(at, [r.per_second for r in run.readings], label=NAMES[run.way], **shown)
        waits.plot(at, [r.p95 for r in run.readings], **shown)
        cores.plot(at, [r.platform_cores for r in run.readings], **shown)
    requests.set(title="Requests a second", xlabel="clients")
    requests.legend(loc="upper left")
    waits.axhline(P95_SECONDS, color=SERIES[4], linewidth=1, linestyle=(0, (4, 3)))
    waits.set(title="p95", xlabel="clients")
    plain_log(waits)
    cores.set(title="Cores used by the platform", xlabel="clients")
    for axes in (requests, cores):
        from_zero(axes)
