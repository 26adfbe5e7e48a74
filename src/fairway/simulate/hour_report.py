"""What an hour of the design's fleet says: the SLO table, fairness, the fleet and its cost."""

from __future__ import annotations

from typing import Any

from fairway.core.pools import Pool
from fairway.lab.report.content import Drawing, Finding, Report, Table, number, seconds
from fairway.lab.report.plots import GREY, SERIES, from_zero, plain_log
from fairway.simulate.capacity import CORE_HOUR, cost_of_slot_hour
from fairway.simulate.contention import Shares
from fairway.simulate.design import BURST_FACTOR, TIER_SHARES, Design
from fairway.simulate.hour import BROKEN, OUTAGE, POOLS, TENTH_DIES_AT, Hour

JAIN_LEAST = 0.98
ERROR_MOST = 0.15
TOOK_SECONDS_MAX = 600.0
WHOLE = Design()  # what must be simulated in that time


def report(hour: Hour, shares: Shares) -> Report:
    rate = hour.design.jobs_per_day
    held = all(hour.tally.wait(pool.number, 0.99) < pool.pickup_target_seconds for pool in POOLS)
    return Report(
        name="simulate",
        brand="Fairway simulate",
        title="A fleet in virtual time",
        question=f"At {rate / 1e9:g} billion jobs a day, with bursts to {BURST_FACTOR:g} × a"
        " tenant's mean, workers that die, a provider that is down and a broken release: does"
        " everybody wait within the limits of their pool, and what does the fleet cost?",
        found=f"{hour.accepted:,} jobs of {hour.tenants:,} tenants in"
        f" {hour.design.seconds / 60:g} min of virtual time:"
        f" waits {'kept' if held else 'did not keep'} to the limits of every pool.",
        answer=_sampling(hour),
        others="virtual time does not mind",
        data=figures(hour, shares),
        findings=_findings(hour, shares),
        drawings=[
            Drawing(
                "simulate-waits",
                "Time from acceptance to start, p99 of each minute. Dotted: the pool's limit."
                " Dashed: what happened on the way.",
                lambda figure: _draw_waits(figure, hour),
                (9.6, 3.6),
            ),
            Drawing(
                "simulate-fleet",
                "Slots of live workers and slots in use, of the part that was simulated.",
                lambda figure: _draw_fleet(figure, hour),
                (9.6, 5.6),
            ),
        ],
        tables=[_slo_table(hour), _tier_table(hour), _fleet_table(hour)],
        notes=_notes(hour),
    )


def _sampling(hour: Hour) -> str:
    design = hour.design
    return (
        f"One shard of {design.shards} was simulated, with its part of the tenants, jobs and"
        f" slots: {design.jobs_per_second:,.0f} of {design.jobs_per_second * design.shards:,.0f}"
        f" jobs a second. It took {hour.took_seconds:.0f} s of one core,"
        f" {hour.took_seconds / max(hour.accepted, 1) * 1e6:.0f} µs a job."
    )


def _findings(hour: Hour, shares: Shares) -> list[Finding]:
    found = []
    for pool in POOLS:
        wait, limit = hour.tally.wait(pool.number, 0.99), pool.pickup_target_seconds
        found.append(
            Finding(f"{pool.name}: wait p99", seconds(wait), f"< {seconds(limit)}", wait < limit)
        )
    ended = sum(hour.tally.ends.values())
    is_whole = hour.design.jobs_per_day >= WHOLE.jobs_per_day and hour.design.seconds >= 3600
    took = hour.took_seconds
    return [
        *found,
        Finding(f"Jain's index, {shares.seconds:g} s overload", f"{shares.jain:.4f}",
                f"≥ {JAIN_LEAST}", shares.jain >= JAIN_LEAST),
        Finding("largest error of a share", f"{shares.error_max:.1%}", f"< {ERROR_MOST:.0%}",
                shares.error_max < ERROR_MOST),
        Finding("jobs that ended", number(ended)),
        Finding("dead letters", number(hour.tally.ends["dead"])),
        Finding("leases of dead workers", number(hour.lost_leases)),
        Finding("calls of the provider", f"{hour.amplification:.2f} × needed"),
        Finding("held by open circuits, p99", seconds(hour.tally.held_wait(0.99))),
        Finding("circuits open at once", number(hour.circuits_most)),
        Finding("types moved by the clock", number(len(hour.moved))),
        Finding("fleet decisions", number(len(hour.decisions))),
        Finding("processor time it took", seconds(took),
                f"< {TOOK_SECONDS_MAX:g} s" if is_whole else "",
                took < TOOK_SECONDS_MAX if is_whole else None),
    ]  # fmt: skip


def _slo_table(hour: Hour) -> Table:
    rows = []
    for pool in POOLS:
        tally, limit = hour.tally, pool.pickup_target_seconds
        p99 = tally.wait(pool.number, 0.99)
        rows.append(
            [
                pool.name,
                f"{tally.started(pool.number):,}",
                *(seconds(tally.wait(pool.number, q)) for q in (0.5, 0.9, 0.99, 0.999, 1.0)),
                f"< {seconds(limit)}",
                "held" if p99 < limit else "did not hold",
            ]
        )
    head = ["pool", "jobs", "p50", "p90", "p99", "p99.9", "most", "limit of p99", ""]
    return Table("Waits, from acceptance or due time to the first start", head, rows)


def _tier_table(hour: Hour) -> Table:
    rows = [
        [one.tier, f"{one.tenants:,}", f"{one.load:.0%}"]
        + [seconds(hour.tally.wait_of_tier(one.tier, pool.number, 0.99)) for pool in POOLS]
        for one in TIER_SHARES
    ]
    head = ["tier", "tenants", "of the jobs", *(f"{pool.name} p99" for pool in POOLS)]
    return Table("Waits by tier", head, rows)


def _fleet_table(hour: Hour) -> Table:
    shards, hours = hour.design.shards, hour.design.seconds / 3600
    rows, total = [], 0.0
    for pool in POOLS:
        slot_hours = hour.slot_hours(pool) * shards
        money = slot_hours * cost_of_slot_hour(pool)
        total += money
        slots = slot_hours / hours
        rows.append(
            [
                pool.name,
                f"{slots:,.0f}",
                f"{slots / pool.slots_default:,.0f}",
                f"{hour.utilisation(pool):.0%}",
                f"{cost_of_slot_hour(pool):.4f}",
                f"{money / hours:,.2f}",
            ]
        )
    rows.append(["all", "", "", "", "", f"{total / hours:,.2f}"])
    head = ["pool", "slots", "workers", "in use", "a slot-hour", "an hour"]
    return Table(f"The whole fleet, at {CORE_HOUR:g} a core-hour (any currency)", head, rows)


def _notes(hour: Hour) -> list[str]:
    minutes = hour.design.seconds / 60
    went = (
        f"What goes wrong: the provider is down from minute {OUTAGE[0] * minutes:g} to"
        f" {OUTAGE[1] * minutes:g}, a release is broken from {BROKEN[0] * minutes:g} to"
        f" {BROKEN[1] * minutes:g}, a tenth of all workers die at {TENTH_DIES_AT * minutes:g}, and"
        " each worker once a day besides."
    )
    moved = [
        f"After {at / 60:.1f} min the clock moved “{name}” to the {pool} pool."
        for at, name, pool in hour.moved
    ]
    return [
        "Real: the dispatcher, fair share, windows, retries, circuits, quarantine, probes, caps of"
        " the promoter, pool classifier and autoscaler. In their place: PostgreSQL, HTTP, and"
        " handlers, by how long they take. One owner that neither dies nor pauses.",
        _sampling(hour)
        + " Shards share nothing; slots that are cut into parts wait longer than slots that all"
        " share, so the whole waits no longer than its part.",
        went,
        f"{hour.tally.held:,} jobs that lean on the provider came while it was down, or before it"
        " was found again: they waited for it and not for a slot, and are told apart.",
        *moved,
        f"{hour.unstarted:,} jobs had not started when the time was over.",
    ]


def figures(hour: Hour, shares: Shares) -> dict[str, Any]:
    design, tally = hour.design, hour.tally
    return {
        "experiment": "simulate",
        "jobs_per_day": design.jobs_per_day,
        "shards": design.shards,
        "seconds": design.seconds,
        "seed": design.seed,
        "accepted": hour.accepted,
        "tenants": hour.tenants,
        "unfinished": hour.unfinished,
        "runs": hour.runs,
        "ends": dict(sorted(tally.ends.items())),
        "waits": {
            pool.name: {f"p{q * 100:g}": tally.wait(pool.number, q) for q in (0.5, 0.9, 0.99, 1.0)}
            for pool in POOLS
        },
        "fleet": {pool.name: _pool_data(hour, pool) for pool in POOLS},
        "jain": shares.jain,
        "share_error_max": shares.error_max,
        "lost_leases": hour.lost_leases,
        "amplification": hour.amplification,
        "held_by_circuits": hour.tally.held,
        "circuits_most": hour.circuits_most,
        "types_moved": [list(one) for one in hour.moved],
        "decisions": len(hour.decisions),
        "events": hour.events,
    }


def _pool_data(hour: Hour, pool: Pool) -> dict[str, float]:
    slot_hours = hour.slot_hours(pool) * hour.design.shards
    return {
        "slots": slot_hours / (hour.design.seconds / 3600),
        "slots_most": max((one.slots for one in hour.sights[pool.number]), default=0)
        * hour.design.shards,
        "utilisation": hour.utilisation(pool),
        "cost_per_hour": slot_hours / (hour.design.seconds / 3600) * cost_of_slot_hour(pool),
    }


def _draw_waits(figure: Any, hour: Hour) -> None:
    axes = figure.subplots()
    minutes = range(int(hour.design.seconds // 60) or 1)
    for pool, colour in zip(POOLS, SERIES, strict=False):
        waits = [max(hour.tally.wait_in_minute(pool.number, n, 0.99), 1e-3) for n in minutes]
        axes.plot([n + 0.5 for n in minutes], waits, color=colour, label=pool.name, linewidth=1.6)
        axes.axhline(pool.pickup_target_seconds, color=colour, linewidth=1, linestyle=":")
    plain_log(axes)
    axes.set(title="Wait, p99 of each minute", xlabel="minute")
    axes.legend(loc="lower right", ncols=3)
    _mark(axes, hour)


def _draw_fleet(figure: Any, hour: Hour) -> None:
    for axes, pool, colour in zip(figure.subplots(3, 1, sharex=True), POOLS, SERIES, strict=False):
        seen = hour.sights[pool.number]
        at = [one.at_seconds / 60 for one in seen]
        axes.plot(at, [one.slots for one in seen], color=GREY, label="slots")
        axes.plot(at, [one.busy for one in seen], color=colour, label="in use", linewidth=1.4)
        axes.set(title=f"{pool.name} pool")
        axes.legend(loc="lower right", ncols=2)
        from_zero(axes)
        _mark(axes, hour)
    axes.set(xlabel="minute")


def _mark(axes: Any, hour: Hour) -> None:
    minutes = hour.design.seconds / 60
    marks = [(OUTAGE[0], "outage"), (BROKEN[0], "broken release"), (TENTH_DIES_AT, "a tenth dies")]
    for part, text in marks:
        axes.axvline(part * minutes, color=SERIES[4], linewidth=1, linestyle=(0, (4, 3)))
        axes.annotate(
            text,
            (part * minutes, 1),
            xytext=(3, -3),
            fontsize=8,
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            color=SERIES[4],
            va="top",
        )
