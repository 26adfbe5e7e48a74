"""What the pool experiment says: starvation in four sizes, and the fix."""

from __future__ import annotations

from typing import Any, NamedTuple

from fairway.lab.experiments.steps import StepSetup, scaled
from fairway.lab.measure.timeline import rate_of
from fairway.lab.report.content import Drawing, Finding, Report, Table, number, seconds
from fairway.lab.report.plots import GREEN, SERIES, from_zero, plain_log
from fairway.rig.load import Volley
from fairway.rig.quantile import quantile

P99_SECONDS = 2.5


class Sample(NamedTuple):
    at: float
    waiters: int
    held: int


class Outcome(NamedTuple):
    name: str
    pool: int | None  # None: Fairway
    volley: Volley
    latencies: list[float]
    finished: list[float]
    samples: list[Sample]

    @property
    def last(self) -> float:
        return max(shot.intended for shot in self.volley.shots)

    @property
    def during(self) -> list[Sample]:
        """Samples while load was offered, without the first moments of opening connections."""
        return [s for s in self.samples if self.volley.began + 0.5 <= s.at <= self.last]

    @property
    def waiters_max(self) -> int:
        return max((sample.waiters for sample in self.during), default=0)

    def completed(self, service: float) -> float:
        return rate_of(self.finished, self.volley.began + 2 * service, self.last)

    def p99(self) -> float:
        return quantile(self.latencies, 0.99)

    def reply_p95(self) -> float:
        return self.volley.reply_quantile(0.95)


def report(setup: StepSetup, outcomes: list[Outcome]) -> Report:
    *naive, fairway = outcomes
    starved = [one for one in naive if one.completed(setup.service) < 0.9 * _offered(one)]
    sizes = ", ".join(str(one.pool) for one in starved)
    return Report(
        name="pool",
        title="A connection held is a place lost",
        question="A worker that keeps a database connection while it scores needs as many"
        " connections as scores at a time. What happens when the pool is smaller?",
        found=f"Fairway's workers hold no connection: at the same load p99 is"
        f" {seconds(fairway.p99())}, and {_waited(fairway.waiters_max)} for one; the naive service"
        + (f" starves with a pool of {sizes}." if starved else " starved with none of its pools."),
        answer="There scores wait for connections, and so does the front door, up to"
        f" {seconds(max(one.reply_p95() for one in naive))} (p95).",
        data={
            "experiment": "pool",
            "offered_per_s": _offered(fairway),
            "outcomes": [_row(setup, one) for one in outcomes],
            "fairway_waiters_max": fairway.waiters_max,
            "fairway_p99_s": fairway.p99(),
            "starved_pools": [one.pool for one in starved],
            "speed": setup.speed,
            "seed": setup.seed,
        },
        findings=_findings(setup, naive[0], fairway),
        drawings=[
            Drawing(
                "pool",
                "Left: calls that wait for a connection, over time. Right: the two"
                " waits that people feel.",
                lambda figure: _draw(figure, setup, outcomes),
                (9.6, 4.0),
            ),
        ],
        tables=[_table(setup, outcomes)],
        notes=[
            "Demand is 30 scores at a time; a pool of P gives the naive service P ÷ 1.5 s scores a"
            " second at best. Scores not ready when the load ended count with the age they had.",
            "A pool of 40 is enough here, and 40 connections of one small service are a cost that"
            " grows with every worker; Fairway's server keeps 11 at any number of slots.",
            *scaled(setup),
        ],
        doubts=[f"{one.name}: {why}" for one in outcomes for why in one.volley.complaints],
    )


def _findings(setup: StepSetup, naive: Outcome, fairway: Outcome) -> list[Finding]:
    limit = P99_SECONDS / setup.speed
    return [
        Finding("Fairway, waiters", str(fairway.waiters_max), "0", fairway.waiters_max == 0),
        Finding(
            "Fairway, p99 to the score",
            seconds(fairway.p99()),
            f"< {seconds(limit)}",
            fairway.p99() < limit,
        ),
        Finding("Fairway, front door p95", seconds(fairway.reply_p95())),
        Finding("naive pool of 5, waiters", str(naive.waiters_max)),
        Finding(
            "naive pool of 5, completed",
            number(naive.completed(setup.service), "/s"),
            f"of {_offered(naive):.3g}/s offered",
        ),
        Finding("naive pool of 5, front door p95", seconds(naive.reply_p95())),
    ]


def _waited(calls: int) -> str:
    return f"at most {calls} calls waited" if calls else "no call waited"


def _offered(one: Outcome) -> float:
    return one.volley.intended / (one.last - one.volley.began)


def _row(setup: StepSetup, one: Outcome) -> dict[str, Any]:
    return {
        "name": one.name,
        "pool": one.pool,
        "completed_per_s": one.completed(setup.service),
        "p50_s": quantile(one.latencies, 0.5),
        "p99_s": one.p99(),
        "front_door_p95_ms": one.reply_p95() * 1000,
        "waiters_max": one.waiters_max,
    }


def _table(setup: StepSetup, outcomes: list[Outcome]) -> Table:
    rows = [
        [
            one.name,
            number(one.completed(setup.service), "/s"),
            seconds(quantile(one.latencies, 0.5)),
            seconds(one.p99()),
            seconds(one.reply_p95()),
            str(one.waiters_max),
        ]
        for one in outcomes
    ]
    head = ["service", "completed", "score p50", "p99", "front door p95", "most waiters"]
    return Table("Size by size", head, rows)


def _draw(figure: Any, setup: StepSetup, outcomes: list[Outcome]) -> None:
    left, right = figure.subplots(1, 2)
    for one, shade in zip(outcomes, SERIES[2:] * 2, strict=False):
        colour = GREEN if one.pool is None else shade
        at = [sample.at - one.volley.began for sample in one.during]
        left.plot(
            at,
            [sample.waiters for sample in one.during],
            color=colour,
            label=one.name,
            linewidth=2.6 if one.pool is None else 1.5,
        )
    left.set(title="Calls that wait for a connection", xlabel="seconds")
    left.legend(loc="upper left")
    from_zero(left)
    names = [one.name.replace("naive, ", "") for one in outcomes]
    places = list(range(len(outcomes)))
    right.plot(places, [one.p99() for one in outcomes], "o-", color=SERIES[4], label="score p99")
    replies = [one.reply_p95() for one in outcomes]
    right.plot(places, replies, "o-", color=SERIES[1], label="front door p95")
    plain_log(right)
    right.set(title="Waiting, from the intended start", xticks=places, xticklabels=names)
    right.legend(loc="best")
