"""What a change of terms would do, for people: who gains, who loses, and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairway.core.ids import PoolId
from fairway.core.pools import BUILT_IN
from fairway.lab.report.content import Finding, Report, Table, seconds
from fairway.simulate.replay import Change, Effect
from fairway.simulate.usage_log import Recorded

TOLD_MAX = 200  # tenants on a page: those with the largest changes


def report(
    recorded: Recorded,
    changes: Sequence[Change],
    slots: Mapping[PoolId, int],
    found: Sequence[Effect],
) -> Report:
    verdicts = [one.verdict for one in found]
    gain, lose = verdicts.count("gains"), verdicts.count("loses")
    told = ", ".join(map(str, changes)) or "nothing changed"
    offered = ", ".join(
        f"{slots[pool.number]} {pool.name}" for pool in BUILT_IN if pool.number in slots
    )
    return Report(
        name="simulate-replay",
        brand="Fairway simulate",
        title="Before it is applied",
        question=f"What would this have done: {told}?",
        found=f"Of {len(found)} {'tenant' if len(found) == 1 else 'tenants'} {gain}"
        f" {'gains' if gain == 1 else 'gain'}, {lose} {'loses' if lose == 1 else 'lose'} and"
        f" {_unmoved(len(found) - gain - lose)}.",
        others="virtual time does not mind",
        data={
            "experiment": "replay",
            "changes": [one._asdict() for one in changes],
            "slots": {pool.name: slots[pool.number] for pool in BUILT_IN if pool.number in slots},
            "jobs": len(recorded.arrivals),
            "tenants": [
                {
                    "tenant": one.tenant,
                    "verdict": one.verdict,
                    "before": one.before._asdict(),
                    "after": one.after._asdict(),
                }
                for one in found
            ],
        },
        findings=[
            Finding("tenants that gain", str(gain)),
            Finding("tenants that lose", str(lose)),
            Finding("jobs", f"{len(recorded.arrivals):,}"),
        ],
        tables=[_table(found)],
        notes=[
            f"The same {len(recorded.arrivals):,} jobs at the same moments on {offered} slots,"
            " twice. Waits are from acceptance to start.",
            "Gains and loses: the mean wait moves by at least 5 % and 10 ms.",
        ],
    )


def _unmoved(tenants: int) -> str:
    return f"{tenants} {'notices' if tenants == 1 else 'notice'} nothing"


def _table(found: Sequence[Effect]) -> Table:
    by_change = sorted(found, key=lambda one: -abs(one.after.mean - one.before.mean))
    largest = {one.tenant for one in by_change[:TOLD_MAX]}
    rows = [
        [
            one.tenant,
            one.verdict,
            f"{one.before.jobs:,}",
            seconds(one.before.mean),
            seconds(one.after.mean),
            seconds(one.before.p99),
            seconds(one.after.p99),
        ]
        for one in found
        if one.tenant in largest
    ]
    head = ["tenant", "", "jobs", "mean wait", "after", "p99", "after"]
    return Table("Who gains comes first, who loses last", head, rows)


def lines(found: Sequence[Effect]) -> list[str]:
    """The same for a terminal."""
    table = _table(found)
    widths = [max(len(row[n]) for row in (table.head, *table.rows)) for n in range(7)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (table.head, *table.rows)
    ]
