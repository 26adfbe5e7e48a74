"""What a job type may use at most: `@app.job(limits=Limits(memory="512MB", processes=32))`.

Limits need a process of the job's own, so a job type that declares some runs in one. The worker
holds them, as firmly as its machine allows; it says how firmly when it starts.
"""

from __future__ import annotations

import re

from fairway.core.run.process_limits import RunLimits
from fairway.sdk.durations import Duration, milliseconds_of

_UNIT_BYTES = {"b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)(b|kb|mb|gb|tb)")

Size = str | int


class Limits:
    """For each run: memory, processor time, size of a file, open files, processes and threads."""

    def __init__(
        self,
        *,
        memory: Size | None = None,
        cpu: Duration | None = None,
        file_size: Size | None = None,
        open_files: int | None = None,
        processes: int | None = None,
    ) -> None:
        self.terms = RunLimits(
            memory_bytes=None if memory is None else bytes_of(memory),
            cpu_ms=None if cpu is None else _positive(milliseconds_of(cpu), "cpu"),
            file_bytes=None if file_size is None else bytes_of(file_size),
            open_files=None if open_files is None else _positive(open_files, "open_files"),
            processes=None if processes is None else _positive(processes, "processes"),
        )

    def __repr__(self) -> str:
        return f"Limits({self.terms})"


def bytes_of(size: Size) -> int:
    """`"512MB"` or a number of bytes; a megabyte is 1024 × 1024."""
    if isinstance(size, str):
        found = _SIZE.fullmatch(size.replace(" ", "").lower())
        if not found:
            raise ValueError(f"{size!r} is no size: write it as '512MB', '2GB' or a number")
        size = round(float(found[1]) * _UNIT_BYTES[found[2]])
    return _positive(size, "a size")


def _positive(number: int, what: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ValueError(f"{what} must be a whole number above zero, not {number!r}")
    return number
