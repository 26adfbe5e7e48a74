"""What load balancers and monitoring ask. No key is needed: bind the server to a safe address."""

from __future__ import annotations

from fairway.api.reference.shape import Group, Operation, Reply
from fairway.wire.operator import Health

LIVEZ = Operation(
    name="livez",
    method="GET",
    path="/livez",
    summary="Is the process alive?",
    about="Never asks the database, so a database that is away restarts no server.",
    replies=(Reply(status=200, about="Alive.", kind=Health, example={"status": "ok"}),),
)

READYZ = Operation(
    name="readyz",
    method="GET",
    path="/readyz",
    summary="Can it take work?",
    about="The database answers, jobs can be written (nobody holds a lock on their table, and it is"
    " not read-only) and every shard has an owner. Not ready is a 503 that says which check does"
    " not hold.",
    replies=(
        Reply(
            status=200,
            about="Ready.",
            kind=Health,
            example={
                "status": "ok",
                "checks": {"database": True, "jobs_writable": True, "shards_owned": True},
            },
        ),
        Reply(
            status=503,
            about="Not ready.",
            kind=Health,
            example={
                "status": "not ready",
                "checks": {"database": True, "jobs_writable": False, "shards_owned": True},
            },
        ),
    ),
)

METRICS = Operation(
    name="metrics",
    method="GET",
    path="/metrics",
    summary="Metrics of this server",
    about="For Prometheus. Every server answers for itself. Metrics by job type, such as"
    " `fairway_lateness_seconds`, are shown with an operator's key only, or to everybody when"
    " `FAIRWAY_METRICS_NAME_TYPES` is `true`.",
    other_keys=("operator",),
    replies=(
        Reply(
            status=200,
            about="The Prometheus text format.",
            media="text/plain",
            example="# HELP fairway_jobs_accepted_total Jobs on disk and answered 202.\n"
            "# TYPE fairway_jobs_accepted_total counter\nfairway_jobs_accepted_total 1234.0\n",
        ),
    ),
)

MACHINES = Group(
    name="Machines",
    about="Health and metrics. These need no key.",
    operations=(LIVEZ, READYZ, METRICS),
)
