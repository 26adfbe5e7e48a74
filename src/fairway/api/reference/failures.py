"""Failures as operations: dead letters, what restrains failing jobs, and events."""

from __future__ import annotations

from fairway.api.reference import shared
from fairway.api.reference.dead_letters import BY_NAME, DEAD_LETTERS
from fairway.api.reference.shape import Group, Operation, Parameter, Reply
from fairway.wire.dead_letters import EventList, Restraints

RESTRAINTS = Operation(
    name="listRestraints",
    method="GET",
    path="/v1/restraints",
    summary="See what holds failing jobs back",
    about="Dependencies that are away, and job types in quarantine.",
    key="tenant",
    replies=(
        Reply(
            status=200,
            about="What is in force now.",
            kind=Restraints,
            example={
                "circuits": [
                    {
                        "type": "email.send",
                        "dependency": "smtp",
                        "opened_at": "2026-01-31T12:00:00Z",
                        "next_probe_seconds": 7.5,
                    }
                ],
                "quarantines": [{"type": "report.build", "since": "2026-01-31T11:00:00Z"}],
            },
        ),
    ),
)

LIFT = Operation(
    name="liftQuarantine",
    method="DELETE",
    path="/v1/quarantines/{type}",
    summary="Lift a quarantine",
    about="When you have mended the handler and would not wait for a few good runs.",
    key="tenant",
    parameters=(
        Parameter(
            name="type",
            place="path",
            about="The job type.",
            example="report.build",
            shell="report.build",
        ),
    ),
    replies=(Reply(status=204, about="Its jobs have all their attempts again."),),
    problems=("NOT_FOUND", *shared.QUICK),
)

EVENTS = Operation(
    name="listEvents",
    method="GET",
    path="/v1/events",
    summary="List events",
    about="What you should hear of, newest first: circuits, quarantines, throttles. Kept for seven"
    " days.",
    key="tenant",
    parameters=(
        Parameter(
            name="kind", place="query", about="Only of this kind.", example="quarantine_imposed"
        ),
        BY_NAME["limit"],
        Parameter(
            name="cursor",
            place="query",
            about="`next_cursor` of the page before. Opaque.",
            example="4711",
        ),
    ),
    replies=(
        Reply(
            status=200,
            about="A page of events.",
            kind=EventList,
            example={
                "events": [
                    {
                        "id": 4712,
                        "at": "2026-01-31T12:00:00Z",
                        "kind": "dependency_circuit_open",
                        "subject": "email.send",
                        "detail": "smtp failed for most jobs of type email.send: they wait.",
                    }
                ],
                "next_cursor": None,
            },
        ),
    ),
    problems=("INVALID_REQUEST", "INVALID_CURSOR", *shared.QUICK),
)

FAILURES = Group(
    name="Failures",
    about="What failed for good, and what holds failing jobs back. These need a tenant's key.",
    operations=(*DEAD_LETTERS, RESTRAINTS, LIFT, EVENTS),
)
