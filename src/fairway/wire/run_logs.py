"""What runs say: from a worker, in calls beside the exchange; and to people, page by page."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from fairway.core.run.run_log import LINE_BYTES_MAX, LINES_MAX
from fairway.wire.doc import doc
from fairway.wire.exchange import Epoch, LeaseToken

RUNS_MAX = 1_000  # of one call
CALL_LINES_MAX = 2_000
CALL_BYTES_MAX = 512 << 10  # of a call's body

LineNumber = Annotated[int, Meta(ge=1, le=LINES_MAX)]
UnixMilliseconds = Annotated[int, Meta(ge=0, le=253_402_300_799_999)]  # to the year 9999
Level = Annotated[int, Meta(ge=0, le=1_000)]
LineText = Annotated[str, Meta(max_length=LINE_BYTES_MAX)]
Dropped = Annotated[int, Meta(ge=0, le=(1 << 53) - 1)]


class SaidLine(Struct, kw_only=True, omit_defaults=True, gc=False):
    """One line of a run."""

    n: Annotated[LineNumber, doc("Counts the lines of this run, from one and without gap.")]
    at_ms: Annotated[UnixMilliseconds, doc("When it was said, in milliseconds of Unix time.")]
    level: Annotated[Level, doc("As Python's `logging` numbers them: 20 is info, 40 an error.")]
    text: Annotated[LineText, doc(f"What was said, at most {LINE_BYTES_MAX} bytes.")]
    dropped: Annotated[
        Dropped, doc("Of a mark: how many lines before it were left out, for want of room.")
    ] = 0


class RunLines(Struct, kw_only=True):
    """Lines of one run, in order."""

    job: Annotated[str, doc("The job.")]
    tenant: Annotated[str, doc("From its lease.")]
    epoch: Annotated[Epoch, doc("From its lease.")]
    token: Annotated[LeaseToken, doc("From its lease; it may have ended.")]
    attempt: Annotated[int, Meta(ge=1, le=32_767), doc("From its lease.")]
    lines: Annotated[
        list[SaidLine], Meta(min_length=1, max_length=LINES_MAX), doc("In the order of `n`.")
    ]


class KeepLines(Struct, kw_only=True, forbid_unknown_fields=True):
    """What runs have said since the last call."""

    runs: Annotated[list[RunLines], Meta(max_length=RUNS_MAX), doc("Each run once.")]


class LinesKept(Struct, kw_only=True):
    """What became of the lines."""

    kept: Annotated[int, doc("Lines that are on disk.")]
    dropped: Annotated[
        int, doc("Lines that are not: of leases that nobody gave, or beyond what a tenant may keep")
    ]


class LogLine(Struct, kw_only=True):
    """A line of a job's log."""

    attempt: Annotated[int, doc("Which try of the job said it; counts from one.")]
    at: Annotated[datetime, doc("When it was said, by the worker's clock.")]
    level: Annotated[str, doc("debug, info, warning, error or critical.")]
    text: Annotated[str, doc("What was said; long lines are cut.")]
    dropped: Annotated[
        int, doc("Above zero, this is a mark: so many lines were left out here.")
    ] = 0


class LogPage(Struct, kw_only=True):
    """A page of a job's log, oldest first."""

    lines: Annotated[list[LogLine], doc("In the order in which they were said, by run.")]
    next_cursor: Annotated[
        str | None, doc("Where to go on; null when this is all that there is by now.")
    ]


decode_kept = msgspec.json.Decoder(LinesKept).decode
decode_page = msgspec.json.Decoder(LogPage).decode
decode_line = msgspec.json.Decoder(LogLine).decode
