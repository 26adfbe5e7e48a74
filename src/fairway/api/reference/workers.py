"""What a worker says and hears, and what operators ask of workers."""

from __future__ import annotations

from fairway.api.reference import shared
from fairway.api.reference.large import WORKER_PAYLOAD
from fairway.api.reference.shape import Group, Operation, Parameter, Reply
from fairway.api.reference.storing import LOAD_CHECKPOINT, SAVE_CHECKPOINT
from fairway.wire.exchange import ExchangeReply, ExchangeRequest
from fairway.wire.operator import WorkerList

_TOKEN = "5f0c1e8a9b7d4c6e8f1a2b3c4d5e6f70"  # an example of a lease's token

EXCHANGE = Operation(
    name="exchange",
    method="POST",
    path="/v1/workers/{name}/exchange",
    summary="Exchange outcomes for leases",
    about="The one call of a worker. Up go its slots, the outcomes of runs and their progress;"
    " down come leases, cancellations, revoked leases and which outcomes are on disk. The call is"
    " held for `wait_ms` until there is news.\n\n"
    "Three rules make it safe over any network. Send an outcome again until its number comes back"
    " in `recorded` or `refused`. After a call that failed, or a reply with `resync`, send `hello`"
    " and the whole of `running`. A new process is a new `session`. The page EXCHANGE in the"
    " documentation tells it all.",
    key="worker",
    parameters=(
        Parameter(
            name="name",
            place="path",
            about="The worker's name, for people. Letters, digits and `_.:-`.",
            example="worker-1",
            shell="worker-1",
        ),
    ),
    body=ExchangeRequest,
    body_example={
        "session": "0123456789abcdef0123456789abcdef",
        "hello": {"types": [{"name": "email.send"}], "slots": {"short": 50}},
        "running": [],
        "wait_ms": 1000,
    },
    replies=(
        Reply(
            status=200,
            about="The news, after at most 20 seconds; fields without news are left out.",
            kind=ExchangeReply,
            example={
                "leases": [
                    {
                        "job": shared.JOB_ID,
                        "epoch": 50331649,
                        "token": _TOKEN,
                        "type": "email.send",
                        "pool": "short",
                        "tenant": "acme",
                        "attempt": 1,
                        "delivery": 1,
                        "payload": {"to": "ada@example.com", "template": "welcome"},
                    }
                ],
                "beat_ms": 3333,
            },
        ),
    ),
    problems=(
        "INVALID_JSON",
        "INVALID_REQUEST",
        "UNKNOWN_POOL",
        "SESSION_OF_ANOTHER_KEY",
        "TOO_MANY_SESSIONS",
        "TOO_MANY_SLOTS",
        "PAYLOAD_TOO_LARGE",
        "TOO_MANY_VALUES",
        "UNSUPPORTED_MEDIA_TYPE",
        "REQUEST_TIMEOUT",
        "NO_ROOM",
        "OVERLOADED",
        "NOT_OWNER",
    ),
)

_WORKER = {
    "name": "worker-1",
    "life": "9f86d081884c7d65",
    "tenant": None,
    "build": "2025-06-01",
    "slots": {"short": 50, "long": 2},
    "running": {"long": 1},
    "draining": False,
    "silent_seconds": 0.41,
    "limits": {"memory": "cgroup v2, watched", "cpu": "rlimit of each process, watched"},
}

LIST_WORKERS = Operation(
    name="listWorkers",
    method="GET",
    path="/v1/workers",
    summary="List workers",
    about="Every worker that the platform hears, with what it runs and how firmly its machine"
    " holds jobs to their limits.",
    key="operator",
    replies=(
        Reply(
            status=200,
            about="The workers, by name.",
            kind=WorkerList,
            example={"workers": [_WORKER]},
        ),
    ),
    problems=("NOT_OWNER",),
)

DRAIN_WORKER = Operation(
    name="drainWorker",
    method="POST",
    path="/v1/workers/{name}/drain",
    summary="Drain a worker",
    about="The worker takes no more jobs, asks those it runs to checkpoint and hand themselves"
    " back, waits as long as its own grace allows, and ends. No job uses an attempt for it.",
    key="operator",
    parameters=(
        Parameter(
            name="name",
            place="path",
            about="The worker's name, for all its lives; or a `life`, for that one.",
            example="worker-1",
            shell="worker-1",
        ),
    ),
    replies=(
        Reply(
            status=202,
            about="It was asked; the list shows what it still runs.",
            kind=WorkerList,
            example={"workers": [_WORKER | {"draining": True}]},
        ),
    ),
    problems=("NOT_FOUND", "NOT_OWNER"),
)

WORKERS = Group(
    name="Workers",
    about="Run jobs in any language, with a worker's key; look after workers, with the operator's.",
    operations=(
        EXCHANGE,
        SAVE_CHECKPOINT,
        LOAD_CHECKPOINT,
        WORKER_PAYLOAD,
        LIST_WORKERS,
        DRAIN_WORKER,
    ),
)
