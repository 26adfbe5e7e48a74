"""A server as people see it: what it owns, when it was last heard, and the one word for that."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from fairway.core.ids import Term

ServerState: TypeAlias = Literal[
    "live", "standby", "answers_only", "leaving", "standing_in", "gone"
]


class ListedServer(NamedTuple):
    name: str
    url: str
    owns_shards: bool
    is_leaving: bool
    is_there: bool  # its heartbeat has not run out
    since: datetime | None
    silent_seconds: float | None  # since its last heartbeat; None: of a build that has none
    shards: int  # that it owns
    open_shards: int  # of these, those whose jobs it gives out
    stood_in: int  # of these, those of degraded mode
    newest_term: Term | None
    shares_work: bool = False  # with other processes behind its address: as few as needed own some

    @property
    def state(self) -> ServerState:
        if not self.is_there:
            return "gone"
        if self.is_leaving:
            return "leaving"
        if self.stood_in:
            return "standing_in"
        if not self.owns_shards:
            return "answers_only"
        return "standby" if self.shares_work and not self.shards else "live"
