"""The exchange: the one call between a worker and the dispatcher. JSON both ways.

    POST /v1/workers/{name}/exchange

Up go the slots a worker has, the outcomes it has not heard of since, and the progress of what it
runs. Down come leases, cancellations, revoked leases, and which outcomes are now on disk. The call
is held open (`wait_ms`) until there is something to say. A newer call that waits, and a hello,
answer the one held before; a call that does not wait leaves it alone, so a worker may always speak.

Three rules make it safe over any network:
- an outcome is sent again until its number comes back in `recorded` or `refused`;
- after any call that failed, and when a reply says `resync`, the worker sends `hello` and the
  whole of `running`, with what it has reported and not heard of since; the server answers with
  the leases it believes are held and are not in that list;
- a session is one life of one worker process: a new process makes a new one.

Now and then a worker also names all that it runs, so that a disagreement does not live long.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

from fairway.wire.bounds import (
    LABELS_MAX,
    NUMBER_MAX,
    POOLS_MAX,
    SLOTS_MAX,
    TYPES_MAX,
    WAIT_MS_MAX,
    WARM_KEYS_MAX,
)
from fairway.wire.messages import END, JobType, PoolName

NULL = Raw(b"null")

HEX_32 = r"^[0-9a-f]{32}" + END
SessionKey = Annotated[str, Meta(pattern=HEX_32)]
LeaseToken = Annotated[str, Meta(pattern=HEX_32)]
Epoch = Annotated[int, Meta(ge=1, le=(1 << 63) - 1)]
Slots = Annotated[int, Meta(ge=0, le=SLOTS_MAX)]
ShortText = Annotated[str, Meta(max_length=128)]
AttemptsMax = Annotated[int, Meta(ge=1, le=10_000)]
#: Counts for no more than the lease is old, whatever is said.
RanMicroseconds = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
WaitMilliseconds = Annotated[int, Meta(ge=0, le=WAIT_MS_MAX)]
Number = Annotated[int, Meta(ge=0, le=NUMBER_MAX)]
#: Longer than DELAY_MS_MAX is taken for that.
DelayMilliseconds = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class TypeTerms(Struct, kw_only=True, omit_defaults=True):
    """A job type that the worker runs, and how many failures of each class end a job of it."""

    name: JobType
    attempts_max: AttemptsMax | None = None
    timeouts_max: AttemptsMax | None = None
    resources_max: AttemptsMax | None = None
    dependencies_max: AttemptsMax | None = None
    deliveries_max: AttemptsMax | None = None
    pool: PoolName | None = None
    timeout_ms: Annotated[int, Meta(ge=1, le=(1 << 31) - 1)] | None = None
    dependency: ShortText = ""  # what it leans on
    warm_key: ShortText = ""  # what a worker keeps ready for it
    version: ShortText = ""
    schema: dict[str, Any] | None = None  # JSON Schema of the payload


class Hello(Struct, kw_only=True, omit_defaults=True):
    """Who a worker is and what it can run; sent on the first call and on every resync."""

    types: Annotated[list[TypeTerms], Meta(max_length=TYPES_MAX)]
    slots: Annotated[dict[str, Slots], Meta(max_length=POOLS_MAX)]  # pool → slots in all
    build: str = ""
    limits: dict[str, str] = {}  # limit → what holds it on that machine, for people
    labels: Annotated[list[ShortText], Meta(max_length=LABELS_MAX)] = []
    warm_keys: Annotated[list[ShortText], Meta(max_length=WARM_KEYS_MAX)] = []


class Holding(Struct, kw_only=True, omit_defaults=True, gc=False):
    """A lease the worker holds. `progress` is any JSON, shown to the tenant as it is.

    `ended`: the run is over and its report has not been heard of yet, however long that takes.
    """

    job: str
    tenant: str
    epoch: Epoch
    token: LeaseToken
    progress: Raw = NULL
    ended: bool = False  # the run is over; its report is on the way


class Report(Struct, kw_only=True, omit_defaults=True, gc=False):
    """The outcome of one run. `n` is the worker's own running number for it."""

    n: Number
    job: str
    tenant: str
    epoch: Epoch
    token: str
    kind: str  # succeeded | failed | snoozed | cancelled | returned
    ran_us: RanMicroseconds
    result: Raw = NULL
    failure: str | None = None  # the failure class, when kind is failed
    error: Raw = NULL  # {type, message, stack}, and dependency when the class is that
    delay_ms: DelayMilliseconds = 0  # a snooze; a pause of the job's own; a Retry-After


class ExchangeRequest(Struct, kw_only=True, omit_defaults=True):
    """What a worker says. Only `session` is needed; what has nothing to say is left out."""

    session: SessionKey
    call: Number = 0  # counts the calls of a session: one older than its last hello is not heard
    hello: Hello | None = None
    reports: list[Report] = []
    running: list[Holding] | None = None  # the whole truth on a resync, else only news of progress
    running_is_all: bool = False  # this list names everything that runs, also without a hello
    wait_ms: WaitMilliseconds = 0
    draining: bool = False  # no more leases, please
    goodbye: bool = False  # the process has ended: what it held is lost, at once


class Lease(Struct, kw_only=True, omit_defaults=True, gc=False):
    """The right to run one job. `attempt` and `delivery` count from one."""

    job: str
    epoch: int
    token: str
    type: str
    pool: str
    tenant: str
    attempt: int
    delivery: int
    payload: Raw
    timeout_ms: int | None = None
    payload_bytes: int | None = None  # so large that it is not here: it must be fetched
    payload_sha256: str | None = None  # of that one, in hex: what comes must be what was sent
    run_mode: str | None = None  # how the pool runs jobs whose type does not say
    resumes: bool = False  # it was leased before: there may be a checkpoint to begin from


class ExchangeReply(Struct, kw_only=True, omit_defaults=True):
    """What a worker hears. Fields without news are left out."""

    leases: list[Lease] = []
    recorded: list[int] = []  # numbers of reports that are on disk
    refused: list[int] = []  # numbers of reports whose lease was no longer in force
    cancel: list[str] = []  # jobs that somebody asked to stop
    revoked: list[str] = []  # jobs this worker must stop: the lease is another's
    revoked_epochs: list[int] = []  # of each of these: a lease that is newer stands
    drain: bool = False  # an operator wants this worker to hand back what it runs, and to end
    resync: bool = False
    more: bool = False  # call again at once: there may be more leases for free slots
    beat_ms: int = 3000  # call again at least this often while anything runs
    refused_types: list[str] = []  # of the hello: no room for these names; the others are in force


decode_request = msgspec.json.Decoder(ExchangeRequest).decode
decode_report = msgspec.json.Decoder(Report).decode
decode_holding = msgspec.json.Decoder(Holding).decode
decode_reply = msgspec.json.Decoder(ExchangeReply).decode
encode = msgspec.json.Encoder().encode
