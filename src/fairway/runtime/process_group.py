"""Which of the server processes behind one address this is, as its parent says.

The parent (`cli/processes/server_group.py`) says it in the environment and holds every address, so
that all of it stays the same over the lives of a process. A server that runs alone is in no group.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from typing import NamedTuple

GROUP = "FAIRWAY_PROCESS_GROUP"
NUMBER = "FAIRWAY_PROCESS_NUMBER"
URLS = "FAIRWAY_PROCESS_URLS"
COUNTS_FDS = "FAIRWAY_PROCESS_COUNTS_FDS"


class ProcessGroup(NamedTuple):
    """All processes of one server, and this one among them."""

    name: str  # of the whole, while the parent lives
    number: int  # of this one, from 1
    urls: tuple[str, ...]  # where each is reached, by number
    counts_fds: tuple[int, ...] = ()  # where each keeps what it has counted, by number

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> ProcessGroup | None:
        if not environment.get(GROUP):
            return None
        return cls(
            environment[GROUP],
            int(environment[NUMBER]),
            tuple(environment[URLS].split(",")),
            tuple(map(int, filter(None, environment.get(COUNTS_FDS, "").split(",")))),
        )

    def environment(self) -> dict[str, str]:
        """What the parent says to this process."""
        return {
            GROUP: self.name,
            NUMBER: str(self.number),
            URLS: ",".join(self.urls),
            COUNTS_FDS: ",".join(map(str, self.counts_fds)),
        }

    @property
    def siblings(self) -> list[int]:
        """The numbers of the others."""
        return [number for number in range(1, len(self.urls) + 1) if number != self.number]

    @property
    def server_name(self) -> str:
        """Another in every life: what the last one owned is not owned by this one."""
        return f"{self.name}-{self.number}.{os.getpid()}"


def new_group_name() -> str:
    return secrets.token_hex(4)


def server_name(environment: Mapping[str, str] = os.environ) -> str:
    """By which other servers tell this one from all that are and were."""
    group = ProcessGroup.of(environment)
    return secrets.token_hex(8) if group is None else group.server_name
