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

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct

from fairway.core import ids
from fairway.core.run.follow_up_ids import FOLLOW_UPS_MAX
from fairway.core.run.outcome import FailureClass, OutcomeKind
from fairway.wire.bounds import (
    LABELS_MAX,
    NUMBER_MAX,
    POOLS_MAX,
    RECYCLED_MAX,
    SLOTS_MAX,
    TYPES_MAX,
    WAIT_MS_MAX,
    WARM_KEYS_MAX,
)
from fairway.wire.doc import doc
from fairway.wire.job_type import ShortText
from fairway.wire.job_type import TypeTerms as TypeTerms  # a part of a hello
from fairway.wire.messages import END, JobError, JobRequest

NULL = Raw(b"null")

HEX_32 = r"^[0-9a-f]{32}" + END
SessionKey = Annotated[str, Meta(pattern=HEX_32)]
LeaseToken = Annotated[str, Meta(pattern=HEX_32)]
Epoch = Annotated[ids.Epoch, Meta(ge=1, le=(1 << 63) - 1)]
Slots = Annotated[int, Meta(ge=0, le=SLOTS_MAX)]
#: Counts for no more than the lease is old, whatever is said.
RanMicroseconds = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
WaitMilliseconds = Annotated[int, Meta(ge=0, le=WAIT_MS_MAX)]
Number = Annotated[int, Meta(ge=0, le=NUMBER_MAX)]
Shard = Annotated[int, Meta(ge=0, le=ids.SHARDS_MAX - 1)]
RecycledWhy: TypeAlias = Literal["died", "stuck", "apart"]
#: Longer than DELAY_MS_MAX is taken for that.
DelayMilliseconds = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class Hello(Struct, kw_only=True, omit_defaults=True):
    """Who a worker is and what it can run; sent on the first call and on every resync."""

    types: Annotated[
        list[TypeTerms], Meta(max_length=TYPES_MAX), doc("The job types this worker runs.")
    ]
    slots: Annotated[
        dict[str, Slots],
        Meta(max_length=POOLS_MAX),
        doc("Pool → how many jobs it runs at once there."),
    ]
    build: Annotated[str, doc("Which build of the code it is, for people.")] = ""
    limits: Annotated[
        dict[str, str], doc("Limit → what holds it on that machine, for people.")
    ] = {}
    labels: Annotated[
        list[ShortText],
        Meta(max_length=LABELS_MAX),
        doc("What the machine has, such as gpu; some pools ask for labels."),
    ] = []
    warm_keys: Annotated[
        list[ShortText],
        Meta(max_length=WARM_KEYS_MAX),
        doc("What is ready here: types with such a warm_key are preferred."),
    ] = []


class SlotOffer(Struct, kw_only=True, omit_defaults=True):
    """What a worker that serves several owners has for this one. No slot is offered to two."""

    slots: Annotated[
        dict[str, Slots],
        Meta(max_length=POOLS_MAX),
        doc("Pool → how many jobs this owner may have running there; of those in the hello."),
    ]
    elsewhere: Annotated[
        dict[str, Slots],
        Meta(max_length=POOLS_MAX),
        doc("Pool → how many jobs of other owners it runs, for people and the autoscaler."),
    ] = {}
    is_counted: Annotated[
        bool, doc("Of all its owners, this one counts it among its pools' workers.")
    ] = True


class OwnerAt(Struct, kw_only=True, gc=False):
    """A server that owns shards, and where it is reached."""

    url: Annotated[str, doc("Its address, as it says itself.")]
    shards: Annotated[
        list[int], doc("What it owns; a job's is the three hex digits of its id after the 7.")
    ]


class Holding(Struct, kw_only=True, omit_defaults=True, gc=False):
    """A lease the worker holds. `progress` is any JSON, shown to the tenant as it is.

    `ended`: the run is over and its report has not been heard of yet, however long that takes.
    """

    job: Annotated[str, doc("The job.")]
    tenant: Annotated[str, doc("From its lease.")]
    epoch: Annotated[Epoch, doc("From its lease.")]
    token: Annotated[LeaseToken, doc("From its lease.")]
    progress: Annotated[Raw, doc("Any JSON, shown to the tenant as it is.")] = NULL
    ended: Annotated[
        bool, doc("The run is over and its report is on the way: no time limit counts any more.")
    ] = False


class FollowUps(Struct, kw_only=True, omit_defaults=True, gc=False):
    """Jobs that a run starts by succeeding: the n-th has an id that follows from its lease."""

    at_ms: Annotated[
        int,
        Meta(ge=0, lt=1 << 48),
        doc("When the run wanted the first of them, in Unix milliseconds: it is in their ids."),
    ]
    jobs: Annotated[
        list[Raw],
        Meta(min_length=1, max_length=FOLLOW_UPS_MAX),
        doc("In order, each as in a submission; without payload_upload.", list[JobRequest]),
    ]
    traceparent: Annotated[
        str | None, doc("The trace that they belong to: that of the run, by W3C trace context.")
    ] = None


class Report(Struct, kw_only=True, omit_defaults=True, gc=False):
    """The outcome of one run. `n` is the worker's own running number for it."""

    n: Annotated[
        Number, doc("The worker's own running number; it comes back in recorded or refused.")
    ]
    job: Annotated[str, doc("The job.")]
    tenant: Annotated[str, doc("From its lease.")]
    epoch: Annotated[Epoch, doc("From its lease.")]
    token: Annotated[str, doc("From its lease.")]
    kind: Annotated[
        str, doc("What the run meant.", Literal[tuple(kind.value for kind in OutcomeKind)])
    ]
    ran_us: Annotated[RanMicroseconds, doc("How long it ran, in microseconds.")]
    result: Annotated[Raw, doc("Any JSON, when it succeeded.")] = NULL
    failure: Annotated[
        str | None,
        doc(
            "The failure class, when it failed.",
            Literal[tuple(one.value for one in FailureClass)] | None,
        ),
    ] = None
    error: Annotated[Raw, doc("Why it failed, for people.", JobError | None)] = NULL
    delay_ms: Annotated[
        DelayMilliseconds,
        doc("When snoozed: come back after this long. When failed: the pause, if not ours."),
    ] = 0
    follow_ups: Annotated[
        FollowUps | None,
        doc("Jobs to start with this success, all or none; of another end they are dropped."),
    ] = None
    shard: Annotated[Shard | None, doc("From its lease, if it says one.")] = None


class ExchangeRequest(Struct, kw_only=True, omit_defaults=True):
    """What a worker says. Only `session` is needed; what has nothing to say is left out."""

    session: Annotated[SessionKey, doc("32 hex digits, random, made once by each process.")]
    call: Annotated[
        Number,
        doc("Counts up: one older than the last hello is not heard; with reports, it resyncs."),
    ] = 0
    hello: Annotated[Hello | None, doc("On the first call and on every resync.")] = None
    reports: Annotated[
        list[Report], doc("Outcomes that are new, and on a resync all that are not heard of.")
    ] = []
    running: Annotated[
        list[Holding] | None,
        doc("With hello, every lease held or reported and not heard of; else progress only."),
    ] = None
    running_is_all: Annotated[
        bool, doc("Without hello: `running` names all that runs, not only progress.")
    ] = False
    wait_ms: Annotated[
        WaitMilliseconds, doc("Hold the reply this long for news, at most 20 000.")
    ] = 0
    draining: Annotated[bool, doc("No more leases, please.")] = False
    recycled: Annotated[
        dict[RecycledWhy, Annotated[int, Meta(ge=0, le=RECYCLED_MAX)]],
        doc(
            "Processes replaced since the last call, by why: died, stuck (its threads do not stop),"
            " or apart (one that had a job alone died)."
        ),
    ] = {}
    goodbye: Annotated[bool, doc("The process ends: what it still holds is lost at once.")] = False
    offer: Annotated[
        SlotOffer | None,
        doc("Of a worker that serves several owners; without it, all of its slots are this one's."),
    ] = None
    owners: Annotated[
        Annotated[int, Meta(ge=0, le=(1 << 63) - 1)],
        doc("The `owners_version` that it knows: it is told of newer ones."),
    ] = 0


class Lease(Struct, kw_only=True, omit_defaults=True, gc=False):
    """The right to run one job. `attempt` and `delivery` count from one."""

    job: Annotated[str, doc("The job's id.")]
    epoch: Annotated[ids.Epoch, doc("Grows with every lease of the job.")]
    token: Annotated[str, doc("Proves the lease.")]
    type: Annotated[str, doc("Which handler to run.")]
    pool: Annotated[str, doc("Whose slot it takes.")]
    tenant: Annotated[str, doc("Whose job it is.")]
    attempt: Annotated[int, doc("Counts from one.")]
    delivery: Annotated[int, doc("Counts from one.")]
    payload: Annotated[Raw, doc("The handler's arguments.", dict[str, Any])]
    timeout_ms: Annotated[
        int | None, doc("Stop the run after this long and report failed with timeout.")
    ] = None
    payload_bytes: Annotated[
        int | None, doc("So large that it is not here: fetch it, see below.")
    ] = None
    payload_sha256: Annotated[
        str | None, doc("Of the payload that is to be fetched, in hex: compare it.")
    ] = None
    run_mode: Annotated[
        str | None, doc("How the pool runs jobs whose type does not say: loop, thread, process.")
    ] = None
    resumes: Annotated[
        bool, doc("It was given out before: ask for its checkpoint before you run it.")
    ] = False
    traceparent: Annotated[
        str | None, doc("The trace that the job belongs to, by W3C trace context.")
    ] = None
    shard: Annotated[
        int | None, doc("Whose owner hears of its end, where the id says another one.")
    ] = None


class ExchangeReply(Struct, kw_only=True, omit_defaults=True):
    """What a worker hears. Fields without news are left out."""

    leases: Annotated[list[Lease], doc("Jobs to run now.")] = []
    recorded: Annotated[list[int], doc("Numbers of reports that are on disk.")] = []
    refused: Annotated[
        list[int], doc("Numbers of reports whose lease was no longer in force; drop them.")
    ] = []
    dead: Annotated[
        list[int], doc("Of the numbers in recorded, those after which the job is dead.")
    ] = []
    cancel: Annotated[list[str], doc("Jobs that somebody asked to stop.")] = []
    revoked: Annotated[
        list[str], doc("Jobs to stop without a report: the lease is another's.")
    ] = []
    revoked_epochs: Annotated[
        list[ids.Epoch], doc("Of each of these, the epoch that is lost: go on with a newer lease.")
    ] = []
    drain: Annotated[
        bool, doc("An operator asks you to drain: hand back or finish what you run, then leave.")
    ] = False
    resync: Annotated[bool, doc("Say hello again, with the whole of running.")] = False
    more: Annotated[
        bool, doc("Call again at once: there may be more leases for the free slots.")
    ] = False
    beat_ms: Annotated[int, doc("Call again at least this often.")] = 3000
    degraded: Annotated[
        bool,
        doc("No server owns the jobs: these come from the store in turn, without fair shares."),
    ] = False
    refused_types: Annotated[
        list[str],
        doc(
            "Names in your hello for which there is no room; the other types are in force."
            " Say so in your log, go on, and say hello again after a minute or more."
        ),
    ] = []
    refused_why: Annotated[
        dict[str, str],
        doc("Of these, those refused for another reason, such as a pool that is not there."),
    ] = {}
    in_use: Annotated[
        dict[str, int] | None, doc("To an offer: pool → its slots that this owner counts as used.")
    ] = None
    waiting: Annotated[
        dict[str, int],
        doc("To an offer: pool → the weight of tenants whose jobs wait for a slot of this worker."),
    ] = {}
    owners: Annotated[
        list[OwnerAt],
        doc(
            "Who owns which shards, where several servers do, or another one than you called, and"
            " you do not know of it yet."
        ),
    ] = []
    owners_version: Annotated[int, doc("Of that list; a newer one has a larger number.")] = 0


decode_request = msgspec.json.Decoder(ExchangeRequest).decode
decode_report = msgspec.json.Decoder(Report).decode
decode_holding = msgspec.json.Decoder(Holding).decode
decode_reply = msgspec.json.Decoder(ExchangeReply).decode
encode = msgspec.json.Encoder().encode
