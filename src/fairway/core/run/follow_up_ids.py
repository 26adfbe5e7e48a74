"""What follow-ups of a run are called, and how many there may be.

They are written in the transaction that writes the run's success, or not at all. Their ids follow
from the run and a moment that it names once: the run knows them before anybody else does, and its
report, however often it is said, makes each of them once. So they can also be found from their
parent's row, without an index.
"""

from __future__ import annotations

from fairway.core.ids import RANDOM_BITS, Epoch, JobId, make_job_ids, shard_of, unix_ms_of

FOLLOW_UPS_MAX = 1_000  # of one run
FOLLOW_UPS_BYTES_MAX = 1 << 20  # of one run, as they travel with its report
FOLLOW_UP_PAYLOAD_BYTES_MAX = 64 << 10  # they stand in their rows, whatever else may stand aside
AHEAD_MS_MAX = 3_600_000  # of the database's clock: partitions for that are always there


def follow_up_ids(parent: str, epoch: Epoch, at_ms: int, count: int, first: int = 0) -> list[JobId]:
    """Of so many of a run, in order, from the n-th on; in the shard of their parent."""
    # Imported here: programs that only hand jobs in never come by, and it takes a while to load.
    import hashlib

    digest = hashlib.blake2b(f"{parent}/{epoch}".encode(), digest_size=8).digest()
    chance = int.from_bytes(digest) & ((1 << RANDOM_BITS) - 1)
    return make_job_ids(shard_of(parent), at_ms, first, chance, count)


def moment_of(parent: str, unix_ms: int) -> int:
    """What a run names as its moment: by its own clock, but no child is older than its parent."""
    return max(unix_ms, unix_ms_of(parent))


def flaw_of_moment(parent: str, at_ms: int, now_ms: int) -> str | None:
    """What is wrong with the moment that a run names, if it cannot be in an id."""
    if at_ms < unix_ms_of(parent):
        return "The follow-ups are dated before the job that starts them."
    if at_ms > now_ms + AHEAD_MS_MAX:
        ahead = (at_ms - now_ms) // 1000
        return f"The worker's clock is {ahead} s ahead of the platform's: set it right."
    return None
