"""`fairway bench fairness`: does everyone get their share, and what does that cost?

jain_60s                Jain's index of received / entitled, 100 backlogged tenants
share_error_max         weights 100/100/10, estimates wrong by 40x under and 100x over
split_error             equal weights, one tenant's jobs 34 times longer: distance from one half
idle_return_ratio       what a tenant gets after idling, over its share
reservation_violations  slots of a reservation that others held
floor_reached_seconds   from submission to a floor's first slot, pool full of short jobs
victim_p99_ratio        pick-up p99 beside a neighbour's flood, over alone
free_burst_p99_ratio    the same p99 with 100 000 free tenants bursting, over without them
decision_cost_ratio     cost of a decision with 110 000 tenants over 1 000
throughput_vs_fifo      the engine's rate with fair share over first come, first served
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvloop
from rich.console import Console
from rich.table import Table

from fairway.bench import against_fifo, decisions, neighbours, sharing
from fairway.bench.sharing import Shares
from fairway.runtime.telemetry import configure_logging

screen = Console(stderr=True, highlight=False)


def run(*, json_output: bool, scale: float, plots: Path | None) -> int:
    configure_logging(json_lines=False)
    figures, shares = uvloop.run(measure(scale))
    if plots is not None:
        from fairway.bench.fairness_plots import draw

        draw(shares, figures, plots)
    if json_output:
        print(json.dumps(figures))  # noqa: T201  # data goes to stdout
    else:
        show(figures)
    return 0


async def measure(scale: float) -> tuple[dict[str, float], list[Shares]]:
    """All parts; `scale` below 1 shortens them all, for a quick look."""
    figures: dict[str, float] = {}
    kept: list[Shares] = []
    with _part("100 backlogged tenants"):
        figures["jain_60s"], shares = await sharing.many_backlogged(60 * scale)
        kept.append(shares)
    with _part("wrong estimates"):
        under, shares = await sharing.under_estimated(40 * scale)
        kept.append(shares)
        over, shares = await sharing.over_estimated(30 * scale)
        kept.append(shares)
        figures["share_error_max"] = max(under, over)
    with _part("long jobs against short ones"):
        figures["split_error"], shares = await sharing.long_against_short(40 * scale)
        kept.append(shares)
    with _part("back from idle"):
        figures["idle_return_ratio"], shares = await sharing.idle_return(20 * scale)
        kept.append(shares)
    with _part("reservations and floors"):
        protected = await sharing.reserved_and_floor(16 * scale)
        figures |= protected._asdict()
    with _part("neighbours"):
        waits = await neighbours.waits(40 * scale, int(1_000_000 * scale), int(100_000 * scale))
        figures["victim_p99_ratio"] = waits.with_neighbour_ms / waits.alone_ms
        figures["free_burst_p99_ratio"] = waits.with_free_burst_ms / waits.with_neighbour_ms
        figures |= {f"victim_p99_{name}": value for name, value in waits._asdict().items()}
    with _part("cost"):
        figures["decision_cost_ratio"], figures["decision_us"] = decisions.cost_ratio()
        figures["throughput_vs_fifo"] = await against_fifo.throughput_ratio(10_000, 4 * scale)
    return {name: round(value, 4) for name, value in figures.items()}, kept


@contextmanager
def _part(name: str) -> Iterator[None]:
    with screen.status(f"measuring: {name} …"):
        yield


REACH: dict[str, tuple[str, Callable[[float], bool]]] = {
    "jain_60s": ("≥ 0.98", lambda v: v >= 0.98),
    "share_error_max": ("≤ 0.15", lambda v: v <= 0.15),
    "split_error": ("≤ 0.03", lambda v: v <= 0.03),
    "idle_return_ratio": ("≤ 1.1", lambda v: v <= 1.1),
    "reservation_violations": ("0", lambda v: v == 0),
    "floor_reached_seconds": ("< 1", lambda v: v < 1),
    "victim_p99_ratio": ("≤ 1.5", lambda v: v <= 1.5),
    "free_burst_p99_ratio": ("≤ 1.1", lambda v: v <= 1.1),
    "decision_cost_ratio": ("≤ 2", lambda v: v <= 2),
    "throughput_vs_fifo": ("≥ 0.9", lambda v: v >= 0.9),
}


def show(figures: dict[str, float]) -> None:
    table = Table(title="Fair share, all parts on this machine's cores")
    table.add_column("figure")
    table.add_column("measured", justify="right")
    table.add_column("to reach", justify="right")
    for name, value in figures.items():
        wanted, holds = REACH.get(name, ("", lambda v: True))
        colour = "green" if wanted and holds(value) else "red" if wanted else "default"
        table.add_row(name, f"[{colour}]{value:,.3f}[/]", wanted)
    Console().print(table)
