"""Lines of a run as they are kept: some of them together, and the place of each."""

from __future__ import annotations

from typing import NamedTuple

from fairway.core.ids import Epoch, JobId, TenantId


class Chunk(NamedTuple):
    """Lines of one run, one after the other."""

    tenant: TenantId
    job: JobId
    epoch: Epoch
    attempt: int
    first_n: int
    last_n: int
    lines: bytes  # JSON text of a list


class FoundChunk(NamedTuple):
    """What of it is read again."""

    epoch: Epoch
    attempt: int
    lines: bytes


class LogPlace(NamedTuple):
    """After this line of that run."""

    epoch: Epoch
    n: int
