"""What the commands of the bench share: how one runs, and how its figures are shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isnan
from typing import Any, NamedTuple, TypeVar

from rich.console import Console
from rich.table import Table

from fairway.rig.verdict import Verdict, judge
from fairway.runtime.telemetry import configure_logging
from fairway.runtime.told_to_end import run

screen = Console(stderr=True, highlight=False)

FoundT = TypeVar("FoundT")


class Aim(NamedTuple):
    """What a figure is to reach, in words, and whether it does."""

    text: str
    holds: Callable[[float], bool]


def measured(work: Coroutine[Any, Any, FoundT]) -> FoundT:
    configure_logging(json_lines=False)
    return run(work)


@contextmanager
def part(name: str) -> Iterator[None]:
    with screen.status(f"measuring: {name} …"):
        yield


def show_verdict(verdict: Verdict, doubts: Sequence[str]) -> None:
    """For people, also beside JSON; programs have the exit status."""
    colour = {Verdict.HELD: "green", Verdict.NOT_HELD: "red", Verdict.UNJUDGED: "yellow"}[verdict]
    reasons = "".join(f"; {doubt}" for doubt in doubts)
    screen.print(f"[bold {colour}]{verdict.words.capitalize()}[/]{reasons}.")


def show(figures: Mapping[str, float], *, json_output: bool) -> None:
    """What nothing was measured for is None: JSON has no word for not a number."""
    known = {name: None if isnan(value) else value for name, value in figures.items()}
    if json_output:
        print(json.dumps(known))  # noqa: T201  # data goes to stdout
    else:
        Console().print(known)


def show_judged(
    title: str,
    figures: Mapping[str, float],
    aims: Mapping[str, Aim],
    doubts: Sequence[str],
    *,
    json_output: bool,
) -> int:
    """The figures, and whether they reach their aims, unless that is in doubt; the exit status."""
    if json_output:
        show(figures, json_output=True)
    else:
        show_table(title, figures, aims)
    verdict = judge((aim.holds(figures[name]) for name, aim in aims.items()), doubts)
    show_verdict(verdict, doubts)
    return verdict.value


def show_table(title: str, figures: Mapping[str, float], aims: Mapping[str, Aim]) -> None:
    table = Table(title=title)
    table.add_column("figure")
    table.add_column("measured", justify="right")
    table.add_column("to reach", justify="right")
    for name, value in figures.items():
        aim = aims.get(name)
        colour = "default" if aim is None else "green" if aim.holds(value) else "red"
        text = "–" if isnan(value) else f"{value:,.3f}"
        table.add_row(name, f"[{colour}]{text}[/]", aim.text if aim else "")
    Console().print(table)
