"""What a run may say: so many lines, so many bytes, and a mark where some were left out.

The first lines are kept, for they are shown while the run is under way; a part of the room is for
warnings and errors alone, for these are what somebody will look for. Lines are numbered from one
without gap, marks among them, so nobody needs to remember how many a run has said.
"""

from __future__ import annotations

from typing import NamedTuple

LINES_MAX = 1_000  # of one run, marks among them
LINE_BYTES_MAX = 2 << 10  # as UTF-8; a longer one is cut
RUN_BYTES_MAX = 256 << 10
URGENT_LEVEL = 30  # from warnings on, as `logging` numbers them
URGENT_LINES = LINES_MAX // 10  # kept free for these
URGENT_BYTES = RUN_BYTES_MAX // 8
MARK_BYTES = 40  # of a mark's own words, at most


class Taken(NamedTuple):
    """The number of a line; and before it, the number of a mark and how many lines it stands for"""

    number: int
    mark: tuple[int, int] | None = None


class RunLog:
    """The account of one run's lines."""

    __slots__ = ("_bytes", "_dropped", "_lines")

    def __init__(self) -> None:
        self._lines = 0
        self._bytes = 0
        self._dropped = 0  # since the last mark

    def take(self, level: int, size_bytes: int) -> Taken | None:
        """None when there is no room: the line is counted, and a later mark tells of it."""
        mark_bytes = MARK_BYTES if self._dropped else 0
        lines = self._lines + (2 if self._dropped else 1)
        total_bytes = self._bytes + mark_bytes + size_bytes
        is_urgent = level >= URGENT_LEVEL
        if (
            lines > LINES_MAX - (1 if is_urgent else URGENT_LINES)  # the last is for a last mark
            or total_bytes > RUN_BYTES_MAX - MARK_BYTES - (0 if is_urgent else URGENT_BYTES)
        ):
            self.drop()
            return None
        mark = self.last_mark()
        self._lines, self._bytes = lines, total_bytes
        return Taken(lines, mark)

    def drop(self) -> None:
        """A line was left out for another reason: it counts like one without room."""
        self._dropped += 1

    def last_mark(self) -> tuple[int, int] | None:
        """A mark for what was left out since the last one, if anything was."""
        if not self._dropped:
            return None
        dropped, self._dropped = self._dropped, 0
        self._lines += 1
        self._bytes += MARK_BYTES
        return self._lines, dropped


def mark_text(dropped: int) -> str:
    return f"… {dropped} {'line' if dropped == 1 else 'lines'} dropped"


def fitted(line: str) -> str:
    """A line as it is kept: text that can be written as UTF-8, and not too much of it."""
    text = line[:LINE_BYTES_MAX].encode(errors="replace")
    if len(text) <= LINE_BYTES_MAX and len(line) <= LINE_BYTES_MAX:
        return text.decode()
    return text[: LINE_BYTES_MAX - 3].decode(errors="ignore") + "…"
