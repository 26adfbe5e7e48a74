"""The way of a job in `docs/ARCHITECTURE.md`: every file, function and call that it names is there.

Who follows it with "go to definition" must not get lost: a call that a row names stands in one of
the functions of that row, and leads to a function of another row; where it is of something handed
in, the row says where that was.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import NamedTuple

from tests.laws.source import ROOT, trees

PAGE = ROOT / "docs/ARCHITECTURE.md"
FILES_MAX = 40
ROW = re.compile(r"^\| (↩ )?(\d+) \| `([\w/]+\.py)` \| (.*?) \| (.*?)\|$", re.MULTILINE)
NAMES = re.compile(r"`([^`]+)`")
CALL = re.compile(r"`([^`]+)`(?: \((`.*?)\)(?=,|\s*$))?")
DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Row(NamedTuple):
    number: int
    is_return: bool
    file: str
    there: list[str]  # functions of the file
    #: As they stand in the code; for one that was handed in: where, and what it is.
    calls: dict[str, list[str]]

    @property
    def place(self) -> str:
        return f"{self.number} {self.file}"


@cache
def rows() -> list[Row]:
    found = []
    for back, number, file, told, on in ROW.findall(PAGE.read_text("utf-8")):
        calls = {
            call: [name for name in NAMES.findall(handed) if name[0].isupper()]
            for call, handed in CALL.findall(on)
        }
        there = NAMES.findall(told.partition(": ")[0])
        found.append(Row(int(number), bool(back), file, there, calls))
    return found


def test_the_way_is_short_and_numbered() -> None:
    new = [row for row in rows() if not row.is_return]
    assert [row.number for row in new] == list(range(1, len(new) + 1))
    assert 30 < len(new) <= FILES_MAX
    assert len({row.file for row in new}) == len(new)
    homes = {row.number: row.file for row in new}
    assert [row.place for row in rows() if homes.get(row.number) != row.file] == []


def test_files_and_functions_on_the_way_are_there() -> None:
    missing = [
        f"{row.place}: {name}"
        for row in rows()
        for name in row.there
        if row.file not in trees() or name not in defined(row.file)
    ]
    assert missing == []
    assert [row.place for row in rows() if not row.there] == []


def test_a_call_stands_where_the_way_says() -> None:
    lost = [
        f"{row.place}: {call}"
        for row in rows()
        for call in row.calls
        if not any(call in named(row.file, name) for name in row.there)
    ]
    assert lost == []


def test_a_call_leads_to_another_row() -> None:
    """By its last name; one that does not must say whose function it is."""
    known = {name.rpartition(".")[2] for row in rows() for name in row.there}
    astray = [
        f"{row.place}: {call}"
        for row in rows()
        for call, handed in row.calls.items()
        if not handed and call.rpartition(".")[2] not in known
    ]
    assert astray == []


def test_what_was_handed_in_has_a_home() -> None:
    everything = {name for file in trees() for name in defined(file)}
    homeless = [
        f"{row.place}: {name}"
        for row in rows()
        for handed in row.calls.values()
        for name in handed
        if name not in everything
    ]
    assert homeless == []


def test_every_row_is_led_to() -> None:
    """All but the first: by a call of another row, by what was handed in, or by itself before."""
    led = {call.rpartition(".")[2] for row in rows() for call in row.calls}
    led |= {
        name.rpartition(".")[2]
        for row in rows()
        for handed in row.calls.values()
        for name in handed
    }
    missed = [
        row.place for row in rows()[1:] if not led & {name.rpartition(".")[2] for name in row.there}
    ]
    assert missed == []


@cache
def defined(file: str) -> dict[str, ast.AST]:
    """Functions by their names with those of their classes, classes, and constants of a file."""
    found: dict[str, ast.AST] = {}
    for node in trees()[file].body:
        if isinstance(node, DEFINITIONS):
            found[node.name] = node
        if isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}.{one.name}": one for one in node.body if isinstance(one, DEFINITIONS)
            }
        if isinstance(node, ast.Assign):
            found |= {one.id: node for one in node.targets if isinstance(one, ast.Name)}
    return found


@cache
def named(file: str, function: str) -> set[str]:
    """Names, and names with what stands before the dot, in a function."""
    home = defined(file).get(function)
    if home is None:
        return set()
    return {
        ast.unparse(node) for node in ast.walk(home) if isinstance(node, ast.Attribute | ast.Name)
    }
