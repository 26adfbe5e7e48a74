"""Dead letters as operations: list, group, show; replay and discard, one or many."""

from __future__ import annotations

from typing import Any

from fairway.api.reference import shared
from fairway.api.reference.filters import FILTERS as JOB_FILTERS
from fairway.api.reference.shape import Operation, Parameter, Reply, ReplyHeader
from fairway.api.reference.tenancy import BODY
from fairway.wire.dead_letters import (
    ActionList,
    ActionView,
    DiscardMany,
    FailureGroups,
    Matched,
    ReplayMany,
    ReplayOne,
)
from fairway.wire.messages import JobList, JobView

_FINGERPRINT = "5f0c1e8a9b7d4c6e"
_ERROR = {
    "failure": "app_error",
    "reason": "attempts_exhausted",
    "type": "SMTPServerDisconnected",
    "message": "Connection unexpectedly closed",
    "stack": '  File "shop/mail.py", line 20, in deliver',
}
_DEAD: dict[str, Any] = shared.JOB_EXAMPLE | {
    "state": "dead",
    "attempts": 5,
    "deliveries": 5,
    "result": None,
    "error": _ERROR,
    "failures": {"app_error": 5},
    "fingerprint": _FINGERPRINT,
    "history": [
        {
            "delivery": 5,
            "attempt": 5,
            "outcome": "failed",
            "ended_at": "2026-01-31T12:00:00.168Z",
            "ran_seconds": 0.042,
            "worker": "worker-1",
            "build": "r42",
            "reason": "attempts_exhausted",
            "error": _ERROR,
        }
    ],
}
_LISTED = {name: value for name, value in _DEAD.items() if name not in ("payload", "history")}
_ACTION: dict[str, Any] = {
    "id": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
    "kind": "replay",
    "state": "running",
    "type": "email.send",
    "pool": None,
    "fingerprint": None,
    "per_second": 100,
    "matched": 4200,
    "done": 1300,
    "created_at": "2026-01-31T13:00:00Z",
    "finished_at": None,
    "error": None,
}

_CAUSE = Parameter(
    name="fingerprint",
    place="query",
    about="A cause, from the groups.",
    example=_FINGERPRINT,
)
BY_NAME = {parameter.name: parameter for parameter in JOB_FILTERS}
_NARROWING = (*(BY_NAME[name] for name in ("type", "pool", "since", "until")), _CAUSE)
_ACTION_PATH = Parameter(
    name="id",
    place="path",
    about="The action's id.",
    example=_ACTION["id"],
    schema={"type": "string", "format": "uuid"},
    shell="$ACTION",
)
_STARTED = Reply(
    status=202,
    about="The action runs: ask for its progress at `Location`.",
    kind=ActionView,
    headers=(
        ReplyHeader(
            name="Location",
            about="Where to ask how far it has come.",
            example=f"/v1/dead-letters/actions/{_ACTION['id']}",
        ),
    ),
    example=_ACTION | {"done": 0},
)
_COUNTED = Reply(
    status=200,
    about="A dry run: how many match. Nothing was changed.",
    kind=Matched,
    example={"matched": 4200, "is_exact": True},
)
_FILTER_PROBLEMS = ("INVALID_REQUEST", "UNKNOWN_POOL")

LIST = Operation(
    name="listDeadLetters",
    method="GET",
    path="/v1/dead-letters",
    summary="List dead letters",
    about="Jobs that ended without success and that nobody replayed or discarded yet, newest job"
    " first, without payloads. They are kept for seven days.",
    key="tenant",
    parameters=(*_NARROWING, BY_NAME["limit"], BY_NAME["cursor"]),
    replies=(
        Reply(
            status=200,
            about="A page of dead letters.",
            kind=JobList,
            example={"jobs": [_LISTED], "next_cursor": None},
        ),
    ),
    problems=(*_FILTER_PROBLEMS, "INVALID_CURSOR", *shared.SLOW),
)

GROUPS = Operation(
    name="groupDeadLetters",
    method="GET",
    path="/v1/dead-letters/groups",
    summary="Group dead letters by cause",
    about="Job type, error type, message without what differs from job to job, and innermost frame"
    " make a fingerprint; dead letters with the same one most likely died of the same thing.",
    key="tenant",
    replies=(
        Reply(
            status=200,
            about="The groups, and counts by job type.",
            kind=FailureGroups,
            example={
                "groups": [
                    {
                        "fingerprint": _FINGERPRINT,
                        "type": "email.send",
                        "count": 4200,
                        "count_is_exact": True,
                        "last_job": shared.JOB_ID,
                        "last_died_at": "2026-01-31T12:00:00.168Z",
                        "error": _ERROR,
                    }
                ],
                "types": [{"type": "email.send", "count": 4200, "count_is_exact": True}],
            },
        ),
    ),
    problems=shared.SLOW,
)

SHOW = Operation(
    name="getDeadLetter",
    method="GET",
    path="/v1/dead-letters/{id}",
    summary="Get a dead letter",
    about="The job with its payload and the history of its runs.",
    key="tenant",
    parameters=(shared.JOB_PATH,),
    replies=(Reply(status=200, about="The dead letter.", kind=JobView, example=_DEAD),),
    problems=("NOT_FOUND", *shared.QUICK),
)

REPLAY_ONE = Operation(
    name="replayDeadLetter",
    method="POST",
    path="/v1/dead-letters/{id}/replay",
    summary="Replay a dead letter",
    about="The same job, with the same id, goes back to the queue with fresh counters.",
    key="tenant",
    parameters=(shared.JOB_PATH,),
    body=ReplayOne,
    body_example={"payload": {"to": "ada@example.com", "template": "welcome"}},
    replies=(
        Reply(
            status=202, about="The job waits again.", kind=JobView, example=shared.QUEUED_EXAMPLE
        ),
    ),
    problems=(*BODY, "TOO_MANY_WAITING", "NOT_FOUND", "NOT_OWNER", *shared.QUICK),
)

DISCARD_ONE = Operation(
    name="discardDeadLetter",
    method="DELETE",
    path="/v1/dead-letters/{id}",
    summary="Discard a dead letter",
    about="Takes it off the list. The job stays dead, and visible by its id, until its retention"
    " ends.",
    key="tenant",
    parameters=(shared.JOB_PATH,),
    replies=(Reply(status=204, about="It is off the list."),),
    problems=("NOT_FOUND", "NOT_OWNER", *shared.QUICK),
)

REPLAY_MANY = Operation(
    name="replayDeadLetters",
    method="POST",
    path="/v1/dead-letters/replay",
    summary="Replay many dead letters",
    about="All that match the filters of the list and are dead when it begins, oldest job first,"
    " at the given rate; they then run at your fair share. It goes on by itself, through crashes"
    " and failovers, each job once.",
    key="tenant",
    parameters=_NARROWING,
    body=ReplayMany,
    body_example={"per_second": 100, "dry_run": False},
    replies=(_STARTED, _COUNTED),
    problems=(*BODY, "TOO_MANY_WAITING", "UNKNOWN_POOL", "CONFLICT", *shared.SLOW),
)

DISCARD_MANY = Operation(
    name="discardDeadLetters",
    method="POST",
    path="/v1/dead-letters/discard",
    summary="Discard many dead letters",
    about="All that match the filters of the list and are dead when it begins.",
    key="tenant",
    parameters=_NARROWING,
    body=DiscardMany,
    body_example={"dry_run": True},
    replies=(_STARTED, _COUNTED),
    problems=(*BODY, "UNKNOWN_POOL", "CONFLICT", *shared.SLOW),
)

ACTIONS = Operation(
    name="listDeadLetterActions",
    method="GET",
    path="/v1/dead-letters/actions",
    summary="List replays and discards",
    about="The newest, with their progress.",
    key="tenant",
    replies=(
        Reply(status=200, about="The actions.", kind=ActionList, example={"actions": [_ACTION]}),
    ),
)

ACTION = Operation(
    name="getDeadLetterAction",
    method="GET",
    path="/v1/dead-letters/actions/{id}",
    summary="Get the progress of an action",
    about="How many matched, how many are done.",
    key="tenant",
    parameters=(_ACTION_PATH,),
    replies=(Reply(status=200, about="The action.", kind=ActionView, example=_ACTION),),
    problems=("NOT_FOUND", *shared.QUICK),
)

ABORT = Operation(
    name="abortDeadLetterAction",
    method="DELETE",
    path="/v1/dead-letters/actions/{id}",
    summary="Abort an action",
    about="What is done stays done; nothing further begins.",
    key="tenant",
    parameters=(_ACTION_PATH,),
    replies=(
        Reply(
            status=200,
            about="It is aborted.",
            kind=ActionView,
            example=_ACTION | {"state": "aborted", "finished_at": "2026-01-31T13:00:13Z"},
        ),
    ),
    problems=("NOT_FOUND", "CONFLICT", *shared.QUICK),
)

DEAD_LETTERS = (
    LIST, GROUPS, SHOW, REPLAY_ONE, DISCARD_ONE, REPLAY_MANY, DISCARD_MANY, ACTIONS, ACTION, ABORT,
)  # fmt: skip
