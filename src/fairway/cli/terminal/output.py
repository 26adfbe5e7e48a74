"""What a command shows: one answer in the form that was asked for, and questions before bulk acts.

A pipe gets whole lines, however narrow the screen is; only a terminal has a width, and colours.
"""

import csv
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
from cyclopts import Group, Parameter

from fairway.cli.terminal.tables import (
    Heading,
    Room,
    layout,
    lines_below,
    lines_of,
    visible,
    visible_lines,
)
from fairway.core.errors import InvalidRequest

Format: TypeAlias = Literal["table", "json", "jsonl", "csv"]
SHOWN = Group("Output", sort_key=8)
Yes: TypeAlias = Annotated[
    bool, Parameter(name=("--yes", "-y"), negative="", help="Do not ask before it is done.")
]

STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
#: Words that are seen from afar, wherever they fill a cell.
COLOURS = {
    "running": "green",
    "succeeded": "green",
    "dead": "red",
    "failed": "red",
    "error": "red",
    "cancelled": "dim",
    "expired": "yellow",
    "paused": "yellow",
    "draining": "yellow",
}
#: What JSON leaves as it is and a terminal obeys.
_FORMULA = ("=", "+", "-", "@", "\t")
_CONTROLS = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")

GROUPED_MIN = 10_000  # from here on nobody counts zeros

Record: TypeAlias = Mapping[str, Any]


class Column(NamedTuple):
    title: str
    value: str | Callable[[Record], Any]  # a field's name, or what makes the cell of a record
    room: Room = "whole"

    def cell(self, record: Record) -> str:
        if isinstance(self.value, str):
            return visible(shown(record[self.value], self.value))
        return visible(shown(self.value(record)))


def shown(value: Any, field: str = "") -> str:
    """A value as a person reads it; of this field, if one knows."""
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(shown, value)) or "–"
    if isinstance(value, dict):
        return ", ".join(f"{key} {shown(one, key)}" for key, one in value.items()) or "–"
    is_number = field != "id" and not field.endswith("_id")  # an id is copied as it is
    if isinstance(value, int) and is_number and abs(value) >= GROUPED_MIN:
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)


# -- the terminal --------------------------------------------------------------------------------


def say(text: str = "") -> None:
    sys.stdout.write(f"{text}\n")


def is_terminal() -> bool:
    return sys.stdout.isatty()


def painted(text: str, style: str) -> str:
    """In colour, for who sees colours."""
    if not is_terminal() or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m"


def screen_width() -> int | None:
    return shutil.get_terminal_size().columns if is_terminal() else None


def agreed(what: str, *, yes: bool) -> None:
    """Go on only if somebody says so: `--yes`, or a person at a terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidRequest(
            f"{what} Nobody can be asked here: say --yes if that is what you want."
        )
    sys.stderr.write(f"{what} Go on? [y/N] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        sys.stderr.write("\n")  # Ctrl-D: the cursor is still behind the question
    if answer.strip().lower() not in ("y", "yes"):
        raise InvalidRequest("Nothing was done.")


# -- forms ---------------------------------------------------------------------------------------


@Parameter(name="*")
@dataclass(frozen=True)
class Output:
    """In which form the answer comes."""

    output: Annotated[
        Format, Parameter(name=("--output", "-o"), group=SHOWN, help="The form of the answer.")
    ] = "table"
    json: Annotated[bool, Parameter(negative="", group=SHOWN, help="The same as -o json.")] = False

    @property
    def form(self) -> Format:
        return "json" if self.json else self.output

    def rows(
        self, whole: Any, records: Sequence[Record], columns: Sequence[Column], if_none: str
    ) -> None:
        """A list: `whole` as the server said it in JSON, else its records."""
        if self.form == "json":
            show_json(whole)
        elif self.form == "jsonl":
            show_lines(records)
        elif self.form == "csv":
            show_csv(records)
        elif records:
            show_table(columns, records)
        else:
            say(if_none)

    def record(self, found: Record, text: str | Callable[[], str] | None = None) -> None:
        """One thing: `text` for people, or its fields below each other."""
        if self.form == "json":
            show_json(found)
        elif self.form == "jsonl":
            show_lines([found])
        elif self.form == "csv":
            show_csv([found])
        elif text is None:
            say("\n".join(fields_of(found)))
        else:
            say(text if isinstance(text, str) else text())


def fields_of(found: Record) -> list[str]:
    """`name  value`, a line for each."""
    wide = max(map(len, found), default=0)
    return [f"{name:<{wide}}  {visible(shown(value, name))}" for name, value in found.items()]


def show_table(columns: Sequence[Column], records: Iterable[Record]) -> None:
    headings = [Heading(column.title, column.room) for column in columns]
    rows = [[column.cell(record) for column in columns] for record in records]
    width = screen_width()
    widths, left_out, below = layout(headings, rows, width)
    titles = [heading.title for heading in headings]
    for line in (*lines_of(titles, widths), *lines_below(titles, below, width or 0)):
        say(painted(line, "bold"))
    for row in rows:
        for line in lines_of(row, widths):
            say(_coloured(line, row) if is_terminal() else line)
        for line in lines_below(row, below, width or 0):
            say(line)
    if left_out:
        say(painted(f"no room for: {', '.join(left_out)} (a wider screen, or -o json)", "dim"))


def _coloured(line: str, row: Sequence[str]) -> str:
    for word in {cell for cell in row if cell in COLOURS}:
        line = re.sub(rf"(?<!\S){word}(?!\S)", painted(word, COLOURS[word]), line)
    return line


def show_json(value: Any) -> None:
    say(_harmless(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()))


def show_lines(records: Iterable[Any]) -> None:
    for record in records:
        say(_harmless(msgspec.json.encode(record).decode()))


def show_csv(records: Sequence[Record]) -> None:
    """All fields; what has parts is JSON in its cell."""
    names = list(dict.fromkeys(name for record in records for name in record))
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if names:
        writer.writerow(names)
    writer.writerows([_csv_cell(record.get(name)) for name in names] for record in records)


def _csv_cell(value: Any) -> str:
    if isinstance(value, str):
        # A sheet would take it for a formula, and a tenant chose the words.
        return f"'{visible_lines(value)}" if value.startswith(_FORMULA) else visible_lines(value)
    if value is None:
        return ""
    return _harmless(msgspec.json.encode(value).decode())


def _harmless(json: str) -> str:
    """Control characters stand only inside strings of JSON, where an escape means the same."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", json)
