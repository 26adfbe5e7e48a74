"""How a worker saves and loads the checkpoints of jobs that run for long."""

from __future__ import annotations

from fairway.api.reference import shared
from fairway.api.reference.shape import Operation, Parameter, Reply
from fairway.wire.storage import CheckpointFound, CheckpointSave, CheckpointSaved

_TOKEN = "5f0c1e8a9b7d4c6e8f1a2b3c4d5e6f70"  # an example of a lease's token
_NAME = Parameter(
    name="name",
    place="path",
    about="The worker's name, for people.",
    example="worker-1",
    shell="worker-1",
)

SAVE_CHECKPOINT = Operation(
    name="saveCheckpoint",
    method="POST",
    path="/v1/workers/{name}/checkpoints",
    summary="Save a checkpoint",
    about="Keeps what a running job needs to go on from here, so that its next run does not begin"
    " at the beginning. Sending the same number again is harmless. The newest two of a job are"
    " kept.\n\n"
    "Only the holder of the lease in force can save: after `LEASE_LOST`, stop the run.",
    key="worker",
    parameters=(_NAME,),
    body=CheckpointSave,
    body_example={
        "job": shared.JOB_ID,
        "tenant": "acme",
        "epoch": 50331649,
        "token": _TOKEN,
        "number": 1,
        "state": {"rows_done": 250_000},
    },
    replies=(
        Reply(
            status=201,
            about="It is safe.",
            kind=CheckpointSaved,
            example={"number": 1, "size_bytes": 20, "saved_at": "2026-01-31T12:05:00Z"},
        ),
    ),
    problems=(
        "INVALID_JSON",
        "INVALID_REQUEST",
        "LEASE_LOST",
        "PAYLOAD_TOO_LARGE",
        "UNSUPPORTED_MEDIA_TYPE",
        "REQUEST_TIMEOUT",
        "NO_ROOM",
        "OVERLOADED",
        "STORAGE_UNAVAILABLE",
    ),
)

LOAD_CHECKPOINT = Operation(
    name="loadCheckpoint",
    method="GET",
    path="/v1/workers/{name}/checkpoints/{id}",
    summary="Load the checkpoint of a job",
    about="The newest checkpoint of the runs before this one. Ask when the lease says `resumes`."
    " Its checksum is verified on the way: if the newest is gone or broken, this is the one before"
    " it, `lost` says so, and the tenant gets an event `checkpoint_lost`. If none can be read any"
    " more, the answer is 404 with the code `CHECKPOINT_LOST`.",
    key="worker",
    parameters=(
        _NAME,
        shared.JOB_PATH,
        Parameter(
            name="tenant", place="query", about="From the lease.", example="acme", shell="acme"
        ),
        Parameter(
            name="epoch", place="query", about="From the lease.", example="50331649",
            shell="50331649", schema={"type": "integer", "minimum": 1},
        ),
    ),
    replies=(
        Reply(
            status=200,
            about="The checkpoint.",
            kind=CheckpointFound,
            example={
                "number": 1,
                "size_bytes": 20,
                "saved_at": "2026-01-31T12:05:00Z",
                "state": {"rows_done": 250_000},
                "lost": 0,
            },
        ),
    ),
    problems=(
        "NOT_FOUND", "CHECKPOINT_LOST", "INVALID_REQUEST", "OVERLOADED", "STORAGE_UNAVAILABLE",
    ),
)  # fmt: skip
