"""Worker sessions and the leases they hold: the dispatcher's working memory.

A session is one life of one worker process. Everything here is plain state that only the
dispatcher changes, inside one event loop; nothing here does I/O.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace

from fairway.core.errors import Forbidden
from fairway.core.failure.retry import Decision
from fairway.core.fair_share.fairness import Running
from fairway.core.ids import NO_EPOCH, Epoch, PoolId, ShardId, TenantId, TypeId, shard_of
from fairway.core.job import NO_PAYLOAD, QueuedJob
from fairway.core.run.follow_ups import Children
from fairway.core.run.outcome import FailureClass
from fairway.store.leases import SessionRow

PAYLOAD_BYTES_KEPT = 1 << 10  # of a job that runs; a reference to a large one is shorter
ENDED_LEASES = 100  # that a session may hold beside as many that ended as it has slots
WAKE_DEBOUNCE_US = 1_500  # leases granted within this of the last reply go out together


class Lease(Struct, eq=False, gc=False):
    """The right to run one job now.

    The collector does not see it: a session that ends must let go of its leases and its outbox.
    """

    job: QueuedJob
    epoch: Epoch
    token: str
    session: Session
    granted_us: int
    running: Running | None = None  # what fair share charges for it
    written: bool = False  # the store knows of it
    delivered: bool = False  # its worker was sent it
    sent_us: int = 0  # when, the last time; 0: not by this server
    cancelling: bool = False
    reported: bool = False  # its run is over and its end not taken yet: it has no slot any more
    progress: bytes | None = None
    moved_to: PoolId | None = None  # the pool whose slot it counts for, once it outlasted its own
    home: ShardId | None = None  # of a tenant that was moved; None: where the job's id says

    @property
    def shard(self) -> ShardId:
        return shard_of(self.job.id) if self.home is None else self.home

    def is_of(self, session: Session, epoch: Epoch) -> bool:
        """Whether this run was given to that worker."""
        return self.epoch == epoch and self.session.key == session.key


class Place(Protocol):
    """Where the calls of a session stand while they are held open (`held_calls.py`)."""

    full: set[PoolId]  # pools without a free slot

    @property
    def is_held(self) -> bool:
        """Whether a call stands there now."""

    def freed(self, pool: PoolId) -> None:
        """A slot of a full pool may be free now."""

    def look_again(self) -> None:
        """Whether any of the full pools has a free slot."""


class Session:
    __slots__ = (
        "acks_due",
        "build",
        "cancels",
        "died",
        "drain_asked",
        "draining",
        "greeted",
        "heartbeat_ms",
        "held",
        "hello_number",
        "hellos",
        "in_use",
        "is_claimed",
        "is_closed",
        "is_noted",
        "key",
        "labels",
        "leases",
        "leases_max",
        "limits",
        "missed_since_us",
        "only_tenants",
        "opener",
        "outbox",
        "poll",
        "recorded",
        "recording",
        "refusal",
        "refused",
        "refused_types",
        "revoked",
        "seen_us",
        "slots",
        "tenant",
        "there_since_us",
        "types",
        "wake_due",
        "warm_types",
        "woken_us",
        "worker",
    )

    def __init__(self, key: str, now_us: int) -> None:
        self.key = key
        self.is_claimed = False  # nobody's, until its worker speaks: it is given nothing
        self.opener = ""  # the id of the API key that opened it: no other may speak for it
        self.is_noted = False  # the store has it from this server, and whose it is
        self.refusal: Forbidden | None = None  # why that key opens nothing any more
        self.worker = ""
        self.build = ""  # which build of the code it runs, as it says
        self.tenant: TenantId | None = None  # of its key; None: it runs every tenant's jobs
        self.only_tenants: frozenset[TenantId] | None = None  # or of these only, of a shared worker
        self.types: frozenset[TypeId] = frozenset()
        self.refused_types: list[str] = []  # that its hello said, and there was no room for
        self.warm_types: frozenset[TypeId] = frozenset()  # those it holds something ready for
        self.labels: tuple[str, ...] = ()
        self.slots: dict[PoolId, int] = {}  # pool → slots in all
        self.leases_max = 0  # those whose runs have ended included
        self.in_use: dict[PoolId, int] = {}  # pool → leases of runs that go on
        self.leases: dict[str, Lease] = {}
        self.missed_since_us: dict[tuple[str, Epoch], int] = {}  # sent, and not in its list
        self.seen_us = now_us
        self.there_since_us: int | None = None  # without a long silence; None: no hello yet
        self.heartbeat_ms = 3000
        self.greeted = False  # has said hello to this owner
        self.hellos = 0  # heard so far: a call that began before the last one has nobody to hear it
        self.hello_number = 0  # of the newest call with a hello
        self.draining = False
        self.drain_asked = False  # by an operator
        self.is_closed = False  # it gets no more jobs: it is to be spared once it is idle
        self.limits: dict[str, str] = {}  # limit → what holds it there, for people
        self.poll: asyncio.Future[None] | None = None  # the call that is held open
        self.held: Place | None = None
        self.outbox: list[Lease] = []
        self.recording: set[int] = set()  # numbers of reports on their way to disk
        self.recorded: list[int] = []
        self.died: list[int] = []  # of these, those after which their job is dead
        self.refused: list[int] = []
        self.cancels: list[str] = []
        self.revoked: dict[str, Epoch] = {}  # job → the newest epoch of it that is lost
        self.acks_due = False
        self.wake_due = False
        self.woken_us = 0

    def claim(
        self,
        worker: str,
        tenant: TenantId | None,
        opener: str,
        only: frozenset[TenantId] | None = None,
    ) -> None:
        """Its worker speaks; the key that it shows says whose jobs it may run."""
        if self.is_known:
            if opener != self.opener:
                raise _of_another_key("It was opened with another key.")
        elif tenant is not None and any(one.job.tenant != tenant for one in self.leases.values()):
            raise _of_another_key("It holds leases of another tenant's jobs.")
        self.is_claimed, self.opener = True, opener
        self.worker, self.tenant, self.only_tenants = worker, tenant, only

    @property
    def is_known(self) -> bool:
        """Whose it is: its worker spoke, or an earlier owner wrote it down."""
        return self.is_claimed or bool(self.opener)

    @property
    def row(self) -> SessionRow:
        return SessionRow(self.key, self.worker, self.tenant, self.opener or None)

    def heard(self, now_us: int, silence_us: int) -> None:
        """It speaks. After a silence it may have much to say: it counts as there from now on."""
        if self.there_since_us is not None and now_us - self.seen_us > silence_us:
            self.there_since_us = now_us
        self.seen_us = now_us

    def may_run(self, tenant: TenantId) -> bool:
        """Whether it may hold leases of this tenant's jobs."""
        if self.tenant is not None:
            return self.tenant == tenant
        return self.only_tenants is None or tenant in self.only_tenants

    def free(self, pool: PoolId) -> int:
        """For new leases; what it says has ended has no slot, and counts until it is reported."""
        if self.draining or self.is_closed:
            return 0
        free = self.slots.get(pool, 0) - self.in_use.get(pool, 0)
        return min(free, self.leases_max - len(self.leases))

    def equip(self, slots: dict[PoolId, int]) -> None:
        self.slots = slots
        self.leases_max = 2 * sum(slots.values()) + ENDED_LEASES

    def has_slot(self, pool: PoolId) -> bool:
        """Whether nothing runs on a slot of it, be it for new leases or not."""
        return self.slots.get(pool, 0) > self.in_use.get(pool, 0)

    def hold(self, lease: Lease) -> None:
        self.leases[lease.job.id] = lease
        if not lease.reported:
            pool = lease.moved_to or lease.job.pool
            self.in_use[pool] = self.in_use.get(pool, 0) + 1

    def drop(self, lease: Lease) -> None:
        if self.leases.get(lease.job.id) is lease:
            del self.leases[lease.job.id]
            self.free_slot(lease)

    def free_slot(self, lease: Lease) -> None:
        """Its run is over. Once it was reported, it has no slot to give back."""
        if not lease.reported:
            pool = lease.moved_to or lease.job.pool
            self.in_use[pool] -= 1
            if self.held is not None and pool in self.held.full:
                self.held.freed(pool)

    def take_over(self, lease: Lease) -> None:
        """Its holder goes on in a new life: the lease is this session's now."""
        if lease.session is not self:
            lease.session.drop(lease)
            lease.session = self
            self.hold(lease)

    def revoke(self, job: str, epoch: Epoch) -> None:
        """It must not run this lease. One that is newer may be on its way to it, or run there."""
        self.revoked[job] = max(epoch, self.revoked.get(job, NO_EPOCH))

    @property
    def must_drain(self) -> bool:
        return self.drain_asked and not self.draining

    def take_refused(self) -> list[str]:
        """Names of types that its hello said in vain; told once, and not kept."""
        refused, self.refused_types = self.refused_types, []
        return refused

    # -- a hello -----------------------------------------------------------------------------

    def begin_hello(self, number: int) -> None:
        """It says all that it runs and reports: what was to be said of that is found again."""
        self.hello_number = number
        self.hellos += 1
        self.revoked, self.refused, self.refused_types = {}, [], []

    def runs(self, types: frozenset[TypeId], refused_types: list[str]) -> None:
        """Which job types it can be given, and for which names there was no room."""
        self.types, self.refused_types = types, refused_types

    def describes_itself(self, build: str, limits: dict[str, str]) -> None:
        self.build, self.limits = build, limits

    def fits(self, labels: tuple[str, ...], warm_types: frozenset[TypeId]) -> None:
        """What it has that some pools and types ask for."""
        self.labels, self.warm_types = labels, warm_types

    def beat_every(self, beat_ms: int) -> None:
        self.heartbeat_ms = beat_ms

    # -- it stops ----------------------------------------------------------------------------

    def drain(self, *, is_draining: bool = True) -> None:
        """While it drains it is given nothing."""
        self.draining = is_draining

    def close(self, *, is_closed: bool = True) -> None:
        """While it is closed it is given nothing; what it runs, runs on."""
        self.is_closed = is_closed

    def ask_to_drain(self) -> None:
        """An operator wants it to end when what it runs is over."""
        self.drain_asked = True
        self.wake()

    def shut_out(self, refusal: Forbidden) -> None:
        """Its key opens nothing any more; its worker hears why."""
        self.refusal, self.draining = refusal, True

    # -- what there is to say ------------------------------------------------------------------

    def cancel(self, job: str) -> None:
        self.cancels.append(job)

    def cancel_again(self) -> None:
        """Its worker may not have heard which of its runs were to stop."""
        self.cancels += [one.job.id for one in self.leases.values() if one.cancelling]

    def send(self, lease: Lease) -> None:
        """It goes out with the next reply."""
        self.outbox.append(lease)

    def send_again(self, lease: Lease) -> None:
        """The reply that carried it was lost, so nobody has begun it."""
        lease.delivered = False
        self.outbox.append(lease)

    def noted(self, *, is_noted: bool = True) -> None:
        """The store knows that this server hears it, and whose it is."""
        self.is_noted = is_noted

    def no_longer_recording(self, numbers: Iterable[int]) -> None:
        """Reports that were on their way to disk are there, or given up."""
        self.recording.difference_update(numbers)

    def acknowledge(self, numbers: Iterable[int]) -> None:
        """These reports are recorded."""
        self.recorded += numbers

    def note_dead(self, number: int) -> None:
        """The job of this report, which is recorded, is dead."""
        self.died.append(number)

    def refuse(self, numbers: Iterable[int]) -> None:
        """These reports count for nothing: their leases were lost."""
        self.refused += numbers

    @property
    def has_news(self) -> bool:
        return bool(self.outbox or self.cancels or self.revoked or self.refused or self.must_drain)

    def withdraw_unwritten(self, shards: Collection[ShardId]) -> list[Lease]:
        """Leases on their way out that the store does not know: its worker never hears of them."""
        gone = [lease for lease in self.outbox if not lease.written and lease.shard in shards]
        self.outbox = [one for one in self.outbox if one.written or one.shard not in shards]
        return gone

    def ended(self) -> None:
        """Leases know their session: what was never sent must not keep it."""
        self.outbox = []
        self.wake()

    # -- its held call -------------------------------------------------------------------------

    def hold_call(self, poll: asyncio.Future[None]) -> None:
        self.poll = poll

    def call_over(self, poll: asyncio.Future[None]) -> bool:
        """Answers whether it was the newest: then no call of it is held any more."""
        if self.poll is not poll:
            return False
        self.poll = None
        return True

    def doubt(self) -> None:
        """It must say hello again: what it holds, and what it has to report."""
        self.greeted = False
        self.wake()

    def wake(self) -> None:
        """Answer the held call now."""
        self.wake_due = False
        if self.poll is not None and not self.poll.done():
            self.poll.set_result(None)

    def wake_soon(self, now_us: int) -> None:
        """Answer the held call: at once when it was quiet, else together with what comes next."""
        since_us = now_us - self.woken_us
        if since_us >= WAKE_DEBOUNCE_US:
            self.woken_us = now_us
            self.wake()
        elif not self.wake_due:
            self.wake_due = True
            self.woken_us += WAKE_DEBOUNCE_US
            asyncio.get_running_loop().call_later((WAKE_DEBOUNCE_US - since_us) / 1e6, self.wake)

    def answer_soon(self, pause_seconds: float) -> None:
        """What became of its reports goes out with what comes within a moment."""
        if self.draining:
            self.wake()
        elif self.poll is not None and not self.acks_due:
            self.acks_due = True
            asyncio.get_running_loop().call_later(pause_seconds, self._answer)

    def _answer(self) -> None:
        self.acks_due = False
        if self.recorded or self.refused:
            self.wake()


def _of_another_key(why: str) -> Forbidden:
    return Forbidden(
        f"This session is not yours. {why} Make 32 random hex digits in every new process.",
        code="SESSION_OF_ANOTHER_KEY",
        field="/session",
    )


class End(Struct, frozen=True, gc=False):
    """A run is over and must be written down. `number` is the worker's own for its report."""

    lease: Lease
    number: int | None
    ran_us: int
    result: bytes | None
    decision: Decision | None = None  # None: succeeded
    error: bytes | None = None
    fingerprint: int | None = None  # of the cause, when the job is dead
    outcome_label: str = ""  # the outcome in a word
    failure: FailureClass | None = None
    children: Children | None = None  # what its success starts


class Holding(NamedTuple):
    """A lease that a worker says it holds."""

    job: str
    tenant: TenantId
    epoch: Epoch
    token: str
    progress: bytes | None = None
    ended: bool = False  # its report is on the way


class News(NamedTuple):
    """What the dispatcher has to say to a session."""

    leases: list[Lease]
    recorded: list[int]
    refused: list[int]
    cancels: list[str]
    revoked: list[str]
    revoked_epochs: list[Epoch]  # of each of them: what is newer goes on
    more: bool = False
    drain: bool = False
    heartbeat_ms: int = 3000  # call again at least this often
    refused_types: Sequence[str] = ()  # of its hello: for these names there is no room
    dead: list[int] = []  # of what is recorded  # noqa: RUF012  (never changed)


def shed_payloads(leases: Iterable[Lease]) -> None:
    """They are on their way to their worker: what it may hold is bounded by slots, not by bytes.

    Whoever must send one out again, or puts its job back, reads it again.
    """
    for lease in leases:
        if len(lease.job.payload) > PAYLOAD_BYTES_KEPT:
            lease.job = replace(lease.job, payload=NO_PAYLOAD)
