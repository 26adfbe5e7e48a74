"""How jobs look that are held for their home in another region: as those that wait."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from fairway.core.ids import JobId, unix_ms_of
from fairway.core.lifecycle import State
from fairway.core.regions.held import HeldKind
from fairway.core.unix_time import from_unix_ms
from fairway.services.regions.held import HeldSight
from fairway.services.regions.moved_rows import MovedRow
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.submit.submission_group import NewJob
from fairway.wire.explain import Explained
from fairway.wire.messages import JobView

HELD = "held"  # the reason why it waits


def held_views(held: HeldSight, directory: Directory, here: str, home: str) -> list[JobView]:
    """The region that holds them, and the one that they are held for."""
    views = _waiting_views(held, directory)
    return [msgspec.structs.replace(view, held_in=here, held_for=home) for view in views]


def _waiting_views(held: HeldSight, directory: Directory) -> list[JobView]:
    found = held.found
    if found.kind == HeldKind.JOB:
        moved = msgspec.json.decode(held.row, type=MovedRow)
        return [
            JobView(
                id=found.id,
                type=moved.type,
                pool=moved.pool,
                state=State(moved.row["state"]).label,
                priority=moved.row["priority"],
                attempts=moved.row["attempts"],
                deliveries=moved.row["deliveries"],
                created_at=from_unix_ms(unix_ms_of(found.id)),
            )
        ]
    return [_waiting_view(job, new, directory) for job, new in held.jobs.items()]


def until_when(here: str, home: str, *, is_away: bool) -> str:
    until = "answers" if is_away else "takes it"
    return f"Held in {here} until {home}, its tenant's home, {until}."


def held_explained(view: JobView, detail: str) -> Explained:
    """Why such a job waits; its place in line is its home's to say, when it has it."""
    return Explained(
        id=str(view.id),
        state=view.state,
        reason=HELD,
        detail=detail,
        position=None,
        position_is_exact=True,
        tenants_ahead=0,
        running=0,
        fair_slots=0.0,
        run_seconds=0.0,
        start=None,
        share=None,
    )


def _waiting_view(job: JobId, new: NewJob, directory: Directory) -> JobView:
    return JobView(
        id=job,
        type=new.type,
        pool=directory.pools.by_number[new.pool].name,
        state=State.QUEUED.label,
        priority=new.priority,
        attempts=0,
        deliveries=0,
        created_at=from_unix_ms(unix_ms_of(job)),
        payload=Raw(new.payload),
    )
