"""How much a worker may say of itself and of its runs. Worker and server hold to the same numbers.

What people only read is cut and marked; what decides something is refused with its field's name. A
worker checks first, so that its server never has to.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairway.core.failure.fault import ERROR_BYTES_MAX as ERROR_BYTES_MAX  # they are bounds, too
from fairway.core.run.run_note import PROGRESS_BYTES_MAX as PROGRESS_BYTES_MAX
from fairway.wire.payload import flaw_in

BUILD_CHARACTERS_MAX = 200  # longer ones are cut
LIMITS_MAX = 64  # what holds each limit on a machine; more are left out
LIMIT_CHARACTERS_MAX = 200  # of a name or a value; longer ones are cut
LABELS_MAX = 100  # more are refused
WARM_KEYS_MAX = 1_000
POOLS_MAX = 1_000
TYPES_MAX = 10_000
RECYCLED_MAX = 10_000  # processes that were replaced between two calls
SLOTS_MAX = 10_000  # of one session, in all pools together
UNHEARD_MAX = SLOTS_MAX  # with so many reports that nobody confirmed a worker takes no more jobs
#: Reports and holdings of one call. A hello names what runs, what ended until no more was taken and
#: what ended since, and brings some reports: whoever keeps to the bounds can always say it.
ITEMS_MAX = 3 * SLOTS_MAX
RESULT_BYTES_MAX = 16 << 20  # of one job, as JSON; a larger one fails its run
NUMBER_MAX = (1 << 53) - 1  # of calls and reports; what any language can count to
DELAY_MS_MAX = 100 * 366 * 24 * 3600 * 1000  # a century: longer pauses are cut
WAIT_MS_MAX = (1 << 31) - 1
FLAW_CHARACTERS_MAX = 500  # of what is wrong with what a worker said
CUT = "…"


def cut(text: str, characters_max: int) -> str:
    """The text, or its beginning with a mark that there was more."""
    if len(text) <= characters_max:
        return text
    return text[: characters_max - len(CUT)] + CUT


def cut_limits(limits: Mapping[str, str]) -> dict[str, str]:
    some = list(limits.items())[:LIMITS_MAX]
    return {cut(name, LIMIT_CHARACTERS_MAX): cut(held, LIMIT_CHARACTERS_MAX) for name, held in some}


def shown_progress(progress: bytes) -> bytes:
    """JSON text as it is, or a note in its place why not: half of it is no JSON.

    It is looked at as a payload is: whoever reads the job must be able to read this.
    """
    if len(progress) > PROGRESS_BYTES_MAX:
        return _omitted(f"{len(progress)} bytes; at most {PROGRESS_BYTES_MAX} are kept")
    flaw = flaw_in(progress)
    return progress if flaw is None else _omitted(cut(flaw, FLAW_CHARACTERS_MAX))


def _omitted(why: str) -> bytes:
    return msgspec.json.encode({"omitted": why})
