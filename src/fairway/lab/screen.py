"""What a person sees while an experiment runs: progress on stderr, so that stdout stays data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fairway.lab.report.content import Mark, Report
from fairway.rig.verdict import Verdict

screen = Console(stderr=True, highlight=False)
NAME_CELLS = 34
MARKS = {Mark.GOOD: "green", Mark.BAD: "red", Mark.OPEN: "yellow", Mark.PLAIN: "default"}


class Bar:
    """One line of progress: so much of so much."""

    def __init__(self, progress: Progress, text: str, total: float) -> None:
        self._progress = progress
        self._task = progress.add_task(text, total=total)

    def step(self) -> None:
        self._progress.advance(self._task)

    def reach(self, done: float) -> None:
        self._progress.update(self._task, completed=done)

    def say(self, text: str) -> None:
        self._progress.update(self._task, description=text)


@contextmanager
def bar(text: str, total: float) -> Iterator[Bar]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=screen) as progress:
        yield Bar(progress, text, total)


def tell(report: Report, page: str) -> None:
    """The findings in a few lines, and where the page is."""
    colour = {Verdict.HELD: "green", Verdict.NOT_HELD: "red", Verdict.UNJUDGED: "yellow"}
    verdict = f"[bold {colour[report.verdict]}]{report.word.capitalize()}.[/]"
    screen.print(f"\n[bold]{report.title}[/]\n{verdict} {report.found}\n{report.answer}\n")
    for finding in report.findings:
        mark = finding.mark(report.verdict)
        name = f"{finding.name:<{NAME_CELLS}}"
        if len(name) > NAME_CELLS:  # its figure stands below, in line with the others
            name += f"\n{'':<{NAME_CELLS + 4}}"
        screen.print(
            f"  [{MARKS[mark]}]{mark.value}[/] {name} [bold]{finding.value:<14}[/]"
            f" [dim]{finding.aim}[/]"
        )
    for reason in report.doubts:
        screen.print(f"  [yellow]unjudged:[/] {reason}")
    screen.print(f"\n  {page}\n")
