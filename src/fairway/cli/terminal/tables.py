"""Tables as text: what is shown whole, what is folded and what is left out where there is no room.

Pure functions of cells and a width. What others wrote (errors, names) may hold control characters:
`visible` shows them, so that no text of a tenant moves the cursor of whoever reads it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal, NamedTuple

GAP = 2
INDENT = 4
FOLD_MIN = 12  # a column that is folded to less than this is a rope of letters
FOLD_LEAST = 18  # with less room for each, sentences stand below their row
FOLD_GOOD = 28  # what can be spared is left out before a sentence is folded to less than this

#: `whole`: never cut nor folded; `fold`: goes on in the next line, or stands below its row where
#: there is no room beside the others; `spare`: left out first.
Room = Literal["whole", "fold", "spare"]
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_SPACES = re.compile(r"[\t\r\n]+")


class Heading(NamedTuple):
    title: str
    room: Room = "whole"


class Layout(NamedTuple):
    widths: dict[int, int]  # column → how wide; those that are left out are not in it
    left_out: list[str]  # their titles
    below: list[int]  # columns that stand below their row, over the whole width


def visible(text: str) -> str:
    """One line, with control characters as escapes."""
    return _HIDDEN.sub(_escaped, _SPACES.sub(" ", text))


def visible_lines(text: str) -> str:
    """As `visible`, and lines stay lines: for stacks."""
    return "\n".join(visible(line.expandtabs(4)) for line in text.splitlines())


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def cells_of(text: str) -> int:
    """How many places of a terminal it takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1
        for one in text
    )


def layout(headings: Sequence[Heading], rows: Sequence[Sequence[str]], width: int | None) -> Layout:
    """How wide each column is on a screen of this width; None: as wide as need be."""
    widths = {
        place: max(cells_of(text) for text in (heading.title, *(row[place] for row in rows)))
        for place, heading in enumerate(headings)
    }
    if width is None:
        return Layout(widths, [], [])
    beside, left_out = _without_spares(headings, widths, width)
    folded = [place for place in beside if headings[place].room == "fold"]
    left = width - _taken({p: n for p, n in beside.items() if p not in folded}) - GAP * len(folded)
    below = [place for place in folded if place]  # what a row begins with stays
    if below and left < sum(min(widths[place], FOLD_LEAST) for place in folded):
        rest = {place: wide for place, wide in widths.items() if place not in below}
        return Layout(*_without_spares(headings, rest, width), below)
    for rank, place in enumerate(sorted(folded, key=beside.__getitem__)):
        beside[place] = min(beside[place], max(left // (len(folded) - rank), _floor(beside[place])))
        left -= beside[place]
    return Layout(beside, left_out, [])


def _without_spares(
    headings: Sequence[Heading], widths: dict[int, int], width: int
) -> tuple[dict[int, int], list[str]]:
    """The columns that fit, and the titles of those that are left out, from the last on."""
    kept, left_out = dict(widths), list[str]()
    for place in reversed(widths):
        if headings[place].room == "spare" and _wanted(headings, kept) > width:
            left_out.insert(0, headings[place].title)
            del kept[place]
    return kept, left_out


def _taken(widths: dict[int, int]) -> int:
    return sum(widths.values()) + GAP * max(0, len(widths) - 1)


def _wanted(headings: Sequence[Heading], widths: dict[int, int]) -> int:
    """What these columns need to be read well, with all that may be folded folded."""
    return _taken(
        {
            place: min(wide, FOLD_GOOD) if headings[place].room == "fold" else wide
            for place, wide in widths.items()
        }
    )


def _floor(natural: int) -> int:
    return min(natural, FOLD_MIN)


def lines_of(cells: Sequence[str], widths: dict[int, int]) -> list[str]:
    """One row, on as many lines as its tallest cell needs."""
    columns = [folded(cells[place], wide) for place, wide in widths.items()]
    height = max((len(column) for column in columns), default=0)
    found = []
    for step in range(height):
        texts = [column[step] if step < len(column) else "" for column in columns]
        padded = (
            text + " " * (wide - cells_of(text))
            for text, wide in zip(texts, widths.values(), strict=True)
        )
        found.append((" " * GAP).join(padded).rstrip())
    return found


def lines_below(cells: Sequence[str], below: Sequence[int], width: int) -> list[str]:
    """What has no room beside the rest of a row; a dash is not worth a line."""
    room = max(width - INDENT, FOLD_MIN)
    texts = [cells[place] for place in below if cells[place] != "–"]
    return [" " * INDENT + line for text in texts for line in folded(text, room)]


def folded(text: str, width: int) -> list[str]:
    """Its lines of at most this width: broken at a space if there is one, and nothing is lost."""
    found = []
    while cells_of(text) > width:
        end = _fitting(text, width)
        space = text.rfind(" ", 1, end + 1)
        if space > 0:
            found.append(text[:space])
            text = text[space + 1 :]
        else:
            found.append(text[:end])
            text = text[end:]
    return [*found, text]


def _fitting(text: str, width: int) -> int:
    """How many characters fit; one at least, or there would be no end."""
    taken = 0
    for place, one in enumerate(text):
        taken += cells_of(one)
        if taken > width:
            return max(place, 1)
    return len(text)
