"""One thing that happened, as a tenant reads it; and a notice, as the platform writes it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from fairway.core.ids import JobId, TenantId

Fact: TypeAlias = str | int | float | bool | None


class NewEvent(NamedTuple):
    """A notice of the platform's own. What happens to a job is written where it happens."""

    tenant: TenantId
    kind: str  # one of `KINDS`
    subject: str  # what it is about: a job type, a pool, a schedule
    detail: str  # a sentence for people
    job: JobId | None = None
    facts: Mapping[str, str] | None = None  # beside the detail in its data: texts, for programs


class Event(Struct, frozen=True, omit_defaults=True):
    """Small facts only: never a payload, a result or the text of an error."""

    position: int  # 1, 2, 3 … within the tenant, without gaps; in several shards, within the part
    at: datetime  # by the store's clock
    kind: str
    job: str | None
    subject: str  # the job's type, a pool, a schedule
    data: dict[str, Fact]  # state, attempt, pool, ran_ms, due_at, detail, facts: those there are
    part: int | None = None  # of a tenant in several shards: in the log of which part it stands
    cursor: str | None = None  # and how far all parts have been told with it

    @property
    def resume_after(self) -> int | str:
        """What `after` is to be, to go on behind this event."""
        return self.position if self.cursor is None else self.cursor
