"""How much memory one server may hold with the worst load that is allowed: the sum of all bounds.

Whoever adds a place where bytes can gather gives it a bound and a line here. The factors say how
often a byte is there at the same time: as it came, taken out of what it came in, and on its way to
the store. A tenth on top is for what the allocator keeps.
"""

from __future__ import annotations

from typing import NamedTuple

from fairway.core.backlog import parked, start_rates
from fairway.core.backlog.reading import READ_BYTES_MAX
from fairway.core.backpressure.connections import AHEAD_MAX
from fairway.core.run.run_note import PROGRESS_BYTES_MAX
from fairway.runtime.settings import Settings
from fairway.services.backpressure.body_memory import CALL_BYTES_MAX, CHECKPOINTS_BYTES_MAX
from fairway.services.backpressure.waiting_slots import DOWNLOADS_MAX
from fairway.services.object_storage import checkpoints, upload_checks, uploads

AT_REST_BYTES = 256 << 20  # the program, and what it knows of tenants, types, pools and tombstones
CONNECTION_BYTES = (64 + 64 + 64 + 64) << 10  # a head, a small body, half the next head, a reply
AHEAD_BYTES = 256 << 10  # of one that sent more than that: what the event loop reads in one go
JOB_BYTES = 1 << 10  # of a job in a window, besides its payload and its limits
RATE_BYTES = 2 << 10  # of a key with a rate: 0.3 KB as a rule, its text and its marks at most
LIMITS_BYTES = (
    parked.BYTES_TOTAL + parked.JOBS_TOTAL * JOB_BYTES + start_rates.KEYS_TOTAL * RATE_BYTES
)
RUNNING_JOBS = 20_000  # that the sum allows for; it is workers who say how many slots there are
LEASE_BYTES = (2 << 10) + PROGRESS_BYTES_MAX
PIECES = 3  # of a text on its way in or out: read, looked at, being written
PIECE_BYTES = 256 << 10


class Store(NamedTuple):
    """A place where bytes gather."""

    what: str
    bytes_max: int
    settings: tuple[str, ...] = ()  # that it follows from


def stores(settings: Settings) -> list[Store]:
    looked_at_bytes = upload_checks.LOOKS_MAX * upload_checks.LOOK_BYTES_MAX  # and taken apart, too
    looked_through_bytes = upload_checks.LONG_LOOKS_MAX * PIECES * PIECE_BYTES
    return [
        Store("the program at rest", AT_REST_BYTES),
        Store(
            "connections: heads, small bodies, small replies",
            settings.connections_max * CONNECTION_BYTES,
            ("connections_max",),
        ),
        Store("requests that wait behind another", AHEAD_MAX * AHEAD_BYTES),
        Store("large bodies", _bodies_bytes(settings) * 3, ("body_room_bytes_max",)),
        Store(
            "checkpoints under way",
            (checkpoints.TRANSFERS_MAX * settings.checkpoint_bytes_max + CHECKPOINTS_BYTES_MAX) * 2,
            ("checkpoint_bytes_max",),
        ),
        Store(
            "replies that nobody reads",
            max(settings.unread_bytes_max, settings.checkpoint_bytes_max) * 2,
            ("unread_bytes_max",),
        ),
        Store(
            "windows: jobs that wait",
            settings.window_bytes + settings.window_jobs * JOB_BYTES + 3 * READ_BYTES_MAX,
            ("window_bytes", "window_jobs"),
        ),
        Store("limits by key: jobs that stepped aside, starts of late", LIMITS_BYTES),
        Store(
            "jobs that run",
            settings.window_bytes * 2 + RUNNING_JOBS * LEASE_BYTES,
            ("window_bytes",),
        ),
        Store(
            "results on their way: large ones, and small ones",
            settings.results_waiting_bytes_max * (2 + 2),
            ("results_waiting_bytes_max",),
        ),
        Store(
            "uploads and downloads, piece by piece",
            uploads.FLYING_MAX * PIECES * uploads.PIECE_BYTES
            + 2 * DOWNLOADS_MAX * PIECES * PIECE_BYTES
            + 2 * looked_at_bytes
            + looked_through_bytes,
        ),
    ]


def _bodies_bytes(settings: Settings) -> int:
    """A body that is larger than its room passes alone."""
    room = settings.body_room_bytes_max
    return max(room // 2, settings.body_bytes_max) + 2 * max(room // 4, CALL_BYTES_MAX)


def ceiling_bytes(settings: Settings) -> int:
    return sum(store.bytes_max for store in stores(settings)) * 11 // 10
