"""The overview as one screen of a terminal: a pure function of what the server said and a width.

For an operator the whole platform, for a tenant its own part; both fit 80 columns, and a wider
screen shows more columns. What is not known is a dash. Names and texts are shown as they are: none
of them is read as markup, and none moves the cursor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairway.cli.terminal.moments import age, span
from fairway.cli.terminal.tables import folded, visible

TONES = {"ok": "green", "warning": "yellow", "critical": "red"}
BAR_CELLS = 10
REASONS_MAX, ALARMS_MAX, POOLS_MAX = 4, 6, 24
NARROW, ROOMY, WIDE = 80, 100, 130
NAME_CELLS_MAX = {True: 12, False: 28}  # where it is narrow, and where not
THOUSAND, MILLION = 10_000, 1_000_000

Record: TypeAlias = Mapping[str, Any]


class ScreenColumn(NamedTuple):
    title: str
    cell: Callable[[Record], str | Text]
    from_width: int = 0
    justify: Literal["left", "right"] = "right"


def screen(overview: Record, width: int, url: str, note: str = "") -> RenderableType:
    """All of it; `note` is said on the first line, such as that nobody answers now."""
    is_tenant = "tenant" in overview
    parts: list[RenderableType] = [_head(overview, url, note)]
    if not is_tenant:
        parts += [*_reasons(overview, width), _fleet(overview)]
    parts += ["", _pools(overview, width, TENANTS if is_tenant else OPERATORS)]
    parts += _held(overview, width)
    return Group(*parts, *_alarms(overview, width))


# -- the lines above -----------------------------------------------------------------------------


def _head(overview: Record, url: str, note: str) -> Table:
    status = overview.get("health", {}).get("status", "")
    whose = f"{overview['tenant']} at {url}" if "tenant" in overview else url
    moment = datetime.fromisoformat(overview["at"]).astimezone()
    line = Table.grid(expand=True)
    line.add_column(no_wrap=True, overflow="ellipsis")
    line.add_column(justify="right", no_wrap=True)
    left = Text.assemble(("Fairway", "bold"), "  ", visible(whose))
    right = Text(visible(note) if note else f"{moment:%T %Z}", "yellow" if note else "dim")
    if status:
        left = Text.assemble((status, f"bold {TONES.get(status, '')}"), "  ", left)
    line.add_row(left, right)
    return line


def _reasons(overview: Record, width: int) -> Iterator[Text]:
    reasons = overview["health"]["reasons"]
    told = {one["text"] for one in overview.get("alarms") or ()}  # once is enough
    fresh = [one["text"] for one in reasons if one["text"] not in told]
    for text in fresh[:REASONS_MAX]:
        yield _line("", text, width)
    if len(fresh) > REASONS_MAX:
        yield Text(f"and {len(fresh) - REASONS_MAX} more reasons", "dim")


def _fleet(overview: Record) -> Text:
    workers, shards = overview["workers"], overview["shards"]
    held = {kind: count for kind, count in overview["restraints"].items() if count}
    parts = [
        f"workers {_count(workers['live'])}",
        f"draining {_count(workers['draining'])}",
        f"shards {_count(shards['owned'])}/{_count(shards['total'])}",
        "held back: "
        + (", ".join(f"{_count(n)} {visible(kind)}" for kind, n in held.items()) or "nothing"),
    ]
    return Text("   ".join(parts))


# -- pools ---------------------------------------------------------------------------------------


def _running(pool: Record) -> str:
    return f"{_count(pool['running'])}/{_count(pool['slots'])}"


def _used(pool: Record) -> Text:
    part = pool["utilisation"]
    if part is None:
        return Text("–")
    full = min(round(part * BAR_CELLS), BAR_CELLS)
    tone = "yellow" if pool.get("near_knee") else "green"
    return Text.assemble(("█" * full, tone), ("░" * (BAR_CELLS - full), "dim"), f" {part:>4.0%}")


def _oldest(pool: Record) -> Text:
    waited, promised = pool["oldest_runnable_age_seconds"], pool.get("slo_seconds")
    is_late = waited is not None and promised is not None and waited > promised
    return Text(_span(waited), "bold red" if is_late else "")


def _rate(name: str) -> Callable[[Record], str]:
    return lambda pool: _per_second(pool.get(f"{name}_per_second"))


def _bad_rate(name: str) -> Callable[[Record], Text]:
    def cell(pool: Record) -> Text:
        rate = pool.get(f"{name}_per_second")
        return Text(_per_second(rate), "yellow" if rate else "")

    return cell


def _time(of: str, quantile: str) -> Callable[[Record], str]:
    return lambda pool: _span((pool.get(of) or {}).get(quantile))


NAME = ScreenColumn("pool", lambda pool: visible(pool["name"]), justify="left")
QUEUED = ScreenColumn("queued", lambda pool: _count(pool["queued"]))
OLDEST = ScreenColumn("oldest", _oldest)
FLOW = (
    ScreenColumn("in/s", _rate("accepted")),
    ScreenColumn("out/s", _rate("ended")),
    ScreenColumn("fail/s", _bad_rate("failed"), WIDE),
    ScreenColumn("retry/s", _bad_rate("retried"), WIDE),
    ScreenColumn("dead/s", _bad_rate("dead")),
    ScreenColumn("start p50", _time("pickup_seconds", "p50"), WIDE),
    ScreenColumn("start p99", _time("pickup_seconds", "p99")),
)
OPERATORS = (
    NAME,
    QUEUED,
    ScreenColumn("running", _running),
    ScreenColumn("used", _used, WIDE),
    OLDEST,
    ScreenColumn("SLO", lambda pool: _span(pool["slo_seconds"])),
    *FLOW,
    ScreenColumn("drained", lambda pool: _drained(pool["drain_seconds"])),
)
TENANTS = (
    NAME,
    QUEUED,
    ScreenColumn("running", lambda pool: _count(pool["running"])),
    OLDEST,
    ScreenColumn("share", lambda pool: _part(pool.get("share_received"))),
    ScreenColumn("of", lambda pool: _part(pool.get("share_entitled"))),
    *FLOW,
)


def _pools(overview: Record, width: int, columns: tuple[ScreenColumn, ...]) -> RenderableType:
    pools = overview["pools"]
    if not pools:
        return Text("No pools.", "dim")
    shown = [one for one in columns if one.from_width <= width]
    table = Table(box=None, pad_edge=False, padding=(0, 1 if width < ROOMY else 2, 0, 0))
    for column in shown:
        table.add_column(
            Text(column.title, "bold"),
            justify=column.justify,
            no_wrap=True,
            overflow="ellipsis",
            max_width=NAME_CELLS_MAX[width < ROOMY] if column is NAME else None,
        )
    for pool in pools[:POOLS_MAX]:
        table.add_row(*(_text(column.cell(pool)) for column in shown))
    if len(pools) <= POOLS_MAX:
        return table
    return Group(table, Text(f"and {len(pools) - POOLS_MAX} more pools", "dim"))


def _text(cell: str | Text) -> Text:
    return cell if isinstance(cell, Text) else Text(cell)


HELD = {
    "paused": ("is paused", "are paused"),
    "throttled": ("is throttled", "are throttled"),
    "circuit": ("waits behind an open circuit", "wait behind an open circuit"),
    "no_worker": (
        "waits for a worker that runs its type",
        "wait for a worker that runs their type",
    ),
}


def _held(overview: Record, width: int) -> Iterator[RenderableType]:
    """Jobs that wait for something else than a slot, a line for each pool that has some."""
    for pool in overview["pools"][:POOLS_MAX]:
        if said := [_held_in_words(why, n) for why, n in (pool.get("held") or {}).items() if n]:
            yield _line(f"In {visible(pool['name'])}: ", ", ".join(said), width, "yellow")


def _held_in_words(why: str, jobs: int) -> str:
    one, many = HELD.get(why, (visible(why),) * 2)
    return f"{_count(jobs)} {one if jobs == 1 else many}"


# -- alarms --------------------------------------------------------------------------------------


def _alarms(overview: Record, width: int) -> Iterator[RenderableType]:
    alarms = overview.get("alarms")
    if alarms is None:
        return
    yield ""
    if not alarms:
        yield Text("No alarms.", "dim")
    now = datetime.fromisoformat(overview["at"])
    for one in alarms[:ALARMS_MAX]:
        mark = f"{one['severity']:<8}  {age(one['since'], now):>6}  "
        yield _line(mark, one["text"], width, TONES.get(one["severity"], ""))
        yield _line(" " * len(mark), f"→ {one['runbook']}", width, text_tone="dim")
    if len(alarms) > ALARMS_MAX:
        yield Text(f"and {len(alarms) - ALARMS_MAX} more alarms", "dim")


def _line(mark: str, text: str, width: int, tone: str = "", text_tone: str = "") -> Text:
    """Words that go on below each other, beside what marks them."""
    room = max(width - len(mark), NARROW // 2)
    first, *rest = folded(visible(text), room)
    found = Text.assemble((mark, tone), (first, text_tone))
    for more in rest:
        found.append("\n" + " " * len(mark) + more, text_tone)
    return found


# -- numbers -------------------------------------------------------------------------------------


def _count(number: float | None) -> str:
    if number is None:
        return "–"
    if number >= 10 * MILLION:
        return f"{number / MILLION:.0f}M"
    return f"{number / 1000:.0f}k" if number >= 10 * THOUSAND else f"{number:.0f}"


def _per_second(rate: float | None) -> str:
    if rate is None:
        return "–"
    return f"{rate:.1f}" if rate < 100 else _count(rate)


def _span(seconds: float | None) -> str:
    return "–" if seconds is None else span(seconds)


def _drained(seconds: float | None) -> str:
    return "now" if seconds == 0 else _span(seconds)


def _part(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"
