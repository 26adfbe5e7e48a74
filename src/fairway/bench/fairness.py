"""`fairway bench fairness`: does everyone get their share, and what does that cost?

jain_60s                Jain's index of received / entitled, 100 backlogged tenants
share_error_max         weights 100/100/10, estimates wrong by 40x under and 100x over
split_error             equal weights, one tenant's jobs 34 times longer: distance from one half
idle_return_ratio       what a tenant gets after idling, over its share
reservation_violations  slots of a reservation that others held
floor_reached_seconds   from submission to a floor's first slot, pool full of short jobs
victim_p99_ratio        pick-up p99 beside a neighbour's flood, over alone
free_burst_p99_ratio    the same p99 with 100 000 free tenants bursting, over without them
turns_made_again        of those two, because others disturbed them
decision_cost_ratio     cost of a decision with 110 000 tenants over 1 000
throughput_vs_fifo      the engine's rate with fair share over first come, first served
"""

from __future__ import annotations

from pathlib import Path

from fairway.bench import against_fifo, decisions, neighbours, output, sharing
from fairway.bench.output import Aim, part
from fairway.bench.sharing import Shares
from fairway.rig import foreign_load
from fairway.rig.foreign_load import Spent

SCALE_MIN = 0.5
ONLY_A_LOOK = f"with --scale below {SCALE_MIN:g} it was only a look"


def run(*, json_output: bool, scale: float, plots: Path | None) -> int:
    before = foreign_load.look()
    figures, shares, left_out = output.measured(measure(scale))
    spent = foreign_load.passed(before, foreign_load.look())
    load = foreign_load.foreign_load(foreign_load.without(spent, left_out))
    if plots is not None:
        from fairway.bench.fairness_plots import draw

        draw(shares, figures, plots)
    doubts = [*foreign_load.doubts(load), *([ONLY_A_LOOK] if scale < SCALE_MIN else [])]
    title = "Fair share, all parts on this machine's cores"
    return output.show_judged(title, figures, AIMS, doubts, json_output=json_output)


async def measure(scale: float) -> tuple[dict[str, float], list[Shares], list[Spent | None]]:
    """All parts; `scale` below 1 shortens them all, for a quick look.

    Answers the figures, what plots show, and what passed while nothing was measured that counts.
    """
    figures: dict[str, float] = {}
    kept: list[Shares] = []
    with part("100 backlogged tenants"):
        figures["jain_60s"], shares = await sharing.many_backlogged(60 * scale)
        kept.append(shares)
    with part("wrong estimates"):
        under, shares = await sharing.under_estimated(40 * scale)
        kept.append(shares)
        over, shares = await sharing.over_estimated(30 * scale)
        kept.append(shares)
        figures["share_error_max"] = max(under, over)
    with part("long jobs against short ones"):
        figures["split_error"], shares = await sharing.long_against_short(40 * scale)
        kept.append(shares)
    with part("back from idle"):
        figures["idle_return_ratio"], shares = await sharing.idle_return(20 * scale)
        kept.append(shares)
    with part("reservations and floors"):
        protected = await sharing.reserved_and_floor(16 * scale)
        figures |= protected._asdict()
    with part("neighbours"):
        turns = await neighbours.waits(12 * scale, int(1_000_000 * scale), int(100_000 * scale))
        figures["victim_p99_ratio"] = turns.victim_ratio
        figures["free_burst_p99_ratio"] = turns.free_burst_ratio
        figures |= {f"victim_p99_{name}": ms for name, ms in turns.medians()._asdict().items()}
        figures["turns_made_again"] = len(turns.left_out)
    with part("cost"):
        figures["decision_cost_ratio"], figures["decision_us"] = decisions.cost_ratio()
        figures["throughput_vs_fifo"] = await against_fifo.throughput_ratio(10_000, 4 * scale)
    rounded = {name: round(value, 4) for name, value in figures.items()}
    return rounded, kept, turns.left_out


AIMS = {
    "jain_60s": Aim("≥ 0.98", lambda v: v >= 0.98),
    "share_error_max": Aim("≤ 0.15", lambda v: v <= 0.15),
    "split_error": Aim("≤ 0.03", lambda v: v <= 0.03),
    "idle_return_ratio": Aim("≤ 1.1", lambda v: v <= 1.1),
    "reservation_violations": Aim("0", lambda v: v == 0),
    "floor_reached_seconds": Aim("< 1", lambda v: v < 1),
    "victim_p99_ratio": Aim("≤ 1.5", lambda v: v <= 1.5),
    "free_burst_p99_ratio": Aim("≤ 1.1", lambda v: v <= 1.1),
    "decision_cost_ratio": Aim("≤ 2", lambda v: v <= 2),
    "throughput_vs_fifo": Aim("≥ 0.9", lambda v: v >= 0.9),
}
