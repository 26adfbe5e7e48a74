"""How long reports wait for company, and a worker for their receipt: plain decisions."""

from __future__ import annotations

from typing import NamedTuple

LINGER_SECONDS = 0.003  # a report waits this long for company while others still run
LINGER_BUSY_SECONDS = 0.008  # and this long while very many do
BUSY_JOBS = 200
LISTEN_SECONDS = 0.001  # jobs that end sooner report in the very call that listens
LAST_WORDS_SECONDS = 10.0  # of a worker that ends, until its reports are acknowledged
SILENCE_SECONDS_MAX = 10.0  # without an answer of any server: then nobody will acknowledge them
HURRIED_SECONDS = 2.0  # of one that was told twice to end


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


class LastWords(NamedTuple):
    """Where a worker stands that has handed everything back and still has reports to say."""

    spent_seconds: float
    silent_seconds: float  # since a server answered anything, or since the last words began
    heavy_seconds: float  # what its large reports take on the slowest link
    is_hurried: bool

    @property
    def are_over(self) -> bool:
        """Whoever waits for us waits no longer than somebody listens; a journal keeps the rest."""
        most = HURRIED_SECONDS if self.is_hurried else LAST_WORDS_SECONDS + self.heavy_seconds
        return self.spent_seconds >= most or self.silent_seconds >= SILENCE_SECONDS_MAX
