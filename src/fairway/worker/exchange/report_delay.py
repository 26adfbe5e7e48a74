"""How long a worker's reports wait for company before they are said: a plain decision."""

from __future__ import annotations

from typing import NamedTuple

LINGER_SECONDS = 0.003  # a report waits this long for company while others still run
LINGER_BUSY_SECONDS = 0.008  # and this long while very many do
BUSY_JOBS = 200
LISTEN_SECONDS = 0.001  # jobs that end sooner report in the very call that listens


class Patience(NamedTuple):
    listen_seconds: float  # until a call is held open all the same
    linger_seconds: float  # until what there is to say is said


def patience(running: int, begun: int) -> Patience:
    """With so many jobs running, of which so many came with the last reply."""
    may_end_at_once = running <= begun
    return Patience(
        LISTEN_SECONDS if may_end_at_once else 0.0,
        LINGER_BUSY_SECONDS if running >= BUSY_JOBS else LINGER_SECONDS,
    )
