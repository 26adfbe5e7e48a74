"""Submissions for the owner of a shard: passed on with those of everybody who came at that moment.

Any server takes jobs in; the owner of the tenant's shard judges its limits and writes them, so each
job costs what it costs with one server. While a call to an owner is under way, what comes gathers
for the next: bounded in jobs and bytes a call, in jobs that wait in all and for each tenant.

An owner that gives no answer is left alone for a while (`PeerHealth`), and the jobs are written
here as they would be without it: under the ids that it was given, so that whoever is second finds
them there (`services/submit/already_written.py`). Nothing is accepted before it is on disk. Where
no owner can be asked, limits are judged here, by a share.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

import msgspec

from fairway.api.http.asgi import CONNECTION, Scope
from fairway.api.http.frames import FRAME_BYTES_MAX
from fairway.api.http.headers import Header
from fairway.api.owner_line import OwnerConnection
from fairway.api.passed_jobs import (
    NOT_TAKEN,
    SUBMIT_PATH,
    IsElsewhere,
    OwnerJobs,
    decode_reply,
    encode,
    outcome_of,
)
from fairway.api.peers import Peers, cluster_lines
from fairway.api.region_lines import RegionLines
from fairway.api.waiting_jobs import WaitingJobs
from fairway.core.backpressure.peer_health import PeerHealth
from fairway.core.errors import FairwayError, Refused, Unavailable
from fairway.core.ids import JobId, ShardId, ids_from
from fairway.core.job import is_heavy
from fairway.core.regions.homes import Meant
from fairway.core.server_processes import ProcessGroup
from fairway.core.tenant import Tenant
from fairway.runtime.plain_http import Reply
from fairway.runtime.telemetry import logger
from fairway.services.group_commit import GroupCommit, Lingering, Sizes
from fairway.services.platform import Platform
from fairway.services.submit.submission_group import NewJob, Verdict, WholeKey, size_bytes_of
from fairway.services.transient_errors import not_known

log = logger("passing")

LINES_MAX = 256  # far more than a cluster has owners
CALLS_MAX = 2  # under way to an owner, of each weight
GATHER_SECONDS = 0.005  # where many come at a time
MARGIN_SECONDS = 0.5  # for the way, beyond what the owner itself takes at most
OWNER_LOOK_SECONDS = 0.25
TOO_LARGE = 413
OWNER = b"fairway-owner"
#: No answer, or one that nobody can read.
BROKEN = (OSError, TimeoutError, msgspec.DecodeError, LookupError, TypeError, ValueError)


class Unanswered(NamedTuple):
    """The owner did not take a call; it may have written it, if the call went out."""

    is_open: bool


class NotReached(OSError):
    """There is no way to the owner: it was not asked."""


NOT_ASKED = Unanswered(is_open=False)
Told: TypeAlias = list[Verdict] | FairwayError | Unanswered
Asked = TypeVar("Asked")


class Waiting(NamedTuple):
    """One caller's jobs on their way."""

    call: OwnerJobs
    told: asyncio.Future[Told]
    size_bytes: int


SIZES = Sizes[Waiting](lambda one: max(one.call.count, 1), lambda one: one.size_bytes)


class Passing:
    def __init__(
        self,
        platform: Platform,
        peers: Peers,
        is_elsewhere: IsElsewhere,
        group: ProcessGroup | None = None,
    ) -> None:
        self._numbers = {} if group is None else group.numbers  # of processes, by url
        self._platform = platform
        self._peers = peers
        self._is_elsewhere = is_elsewhere
        self._submissions = platform.submissions
        self._names = platform.directory.names
        self._tenant_shards = platform.tenant_shards
        self._lines: dict[str, OwnerLine] = {}  # by url
        self._admission = platform.admission
        self._waiting = WaitingJobs(platform.settings.submit_waiting_max, "their owner")
        regions = platform.regions
        self._abroad = None if regions is None else RegionLines(platform, regions)

    def home_elsewhere(self, tenant: Tenant) -> str | None:
        """The region in which this tenant's jobs are, if that is another."""
        return None if self._abroad is None else self._abroad.elsewhere(tenant)

    def owner_header(self, scope: Scope, tenant: Tenant) -> tuple[Header, ...]:
        """Tells a program which address would have been nearer, if that one answers.

        The connection itself may go there after this reply, where that is a process of ours.
        """
        shard = self._tenant_shards.of(tenant.id)
        if not self._is_elsewhere(shard) or (url := self._owner_of(shard)) is None:
            return ()
        if self.home_elsewhere(tenant):
            return ()
        line = self._lines.get(url)
        if line is None or line.is_resting():
            return ()
        number, connection = self._numbers.get(url), scope.get(CONNECTION)
        if number is not None and connection is not None:
            owns_nothing = self._is_elsewhere(None)
            connection.passed_on(tenant.id, number, owns_nothing=owns_nothing)
        return ((OWNER, url.encode("latin-1", "replace")),)

    def submit(
        self,
        tenant: Tenant,
        wanted: Sequence[NewJob],
        *,
        is_admitted: bool = False,
        whole: WholeKey | None = None,
        first: JobId | None = None,
        meant: Meant | None = None,
    ) -> Awaitable[list[Verdict]]:
        """As `Submissions.submit`, wherever the owner is; `first`: another region named them, and
        sent them by this home."""
        if self._abroad is not None and first is None and (home := self._abroad.elsewhere(tenant)):
            return self._abroad.submit(home, tenant, wanted, is_admitted=is_admitted, whole=whole)
        shard = self._tenant_shards.of(tenant.id)
        if not self._is_elsewhere(shard):
            ids = None if first is None else ids_from(first, len(wanted))
            return self._submissions.submit(
                tenant, wanted, is_admitted=is_admitted, whole=whole, ids=ids, meant=meant
            )
        first = first or self._submissions.ids.make(shard, len(wanted))[0]
        call = OwnerJobs(tenant.id, len(wanted), is_admitted, 0, first, whole, wanted, meant)
        if not self._names.are_named_by(tenant.id, [new.type for new in wanted]):
            return self._with_new_names(tenant, shard, call)
        return self._pass_on(tenant, self._ask(tenant, shard, call), call)

    async def _with_new_names(
        self, tenant: Tenant, shard: ShardId, call: OwnerJobs
    ) -> list[Verdict]:
        """Names of job types that are news here are looked for here: they cost nothing to make up,
        and at the owner everybody whose jobs travel in the same call would wait for them."""
        if not call.is_admitted:
            self._submissions.look(tenant, call.count)
        try:
            await self._names.know(tenant.id, [new.type for new in call.jobs])
        except Refused:
            self._admission.charge_refused(tenant, call.count)
            raise
        return await self._pass_on(tenant, self._ask(tenant, shard, call), call)

    async def admit(self, tenant: Tenant, count: int) -> None:
        """As `Submissions.admit`, by whoever judges this tenant."""
        shard = self._tenant_shards.of(tenant.id)
        if not self._is_elsewhere(shard):
            self._submissions.admit(tenant, count)
            return
        call = OwnerJobs(tenant.id, count, False, 0, JobId(""), None, ())
        asked = self._ask(tenant, shard, call)
        told = NOT_ASKED if asked is None else await asked
        if isinstance(told, FairwayError):
            raise told
        if isinstance(told, Unanswered):
            self._submissions.admit(tenant, count, self._servers())

    def _node_of(self, shard: ShardId) -> int | None:
        """Of a distributed store, where the shard lies; None: all lie together."""
        placement = self._platform.database.placement
        return None if placement is None else placement.node_of(shard)

    def _owner_of(self, shard: ShardId) -> str | None:
        """Where another server is that owns it; None: nobody knows of one.

        At our own address that was our last life, until its term has run out.
        """
        ownership = self._platform.ownership
        owner = ownership.owners.get(shard)
        if owner is None or owner.owner == ownership.server_name:
            return None
        return None if owner.owner_url == self._platform.settings.url else owner.owner_url or None

    def _servers(self) -> int:
        """How many there are, as far as this one has seen: each judges by its share."""
        return max(self._platform.insight.board.servers, 1)

    async def _pass_on(
        self, tenant: Tenant, asked: asyncio.Future[Told] | None, call: OwnerJobs
    ) -> list[Verdict]:
        told = NOT_ASKED if asked is None else await asked
        if isinstance(told, list):
            return told
        if isinstance(told, FairwayError):
            raise told
        # What may be on disk is no more refused: its caller would send it again as another.
        if not (call.is_admitted or told.is_open):
            self._submissions.admit(tenant, call.count, self._servers())
        ids = ids_from(call.first, call.count)
        try:
            return await self._submissions.submit(
                tenant, call.jobs, is_admitted=True, whole=call.whole, ids=ids, meant=call.meant
            )
        except Unavailable:
            if told.is_open:
                raise not_known() from None
            raise

    def _ask(self, tenant: Tenant, shard: ShardId, call: OwnerJobs) -> asyncio.Future[Told] | None:
        """What the owner will say; None when there is none, or it is being left alone."""
        url = self._owner_of(shard)
        if url is None or (line := self._line(url)).is_resting():
            return None
        if not call.is_admitted:
            self._admission.look(tenant, call.count, self._waiting.jobs)
        self._waiting.check_room(tenant.id, call.count)
        if owed := self._admission.take_owed(tenant.id):
            call = msgspec.structs.replace(call, owed=owed)
        self._waiting.add(tenant.id, call.count)
        return line.ask(call, self._node_of(shard))

    def _line(self, url: str) -> OwnerLine:
        line = self._lines.get(url)
        if line is None:
            if len(self._lines) >= LINES_MAX:  # what waits there is still told
                del self._lines[next(iter(self._lines))]
            line = self._lines[url] = OwnerLine(self._platform, self._peers, url, self._waiting)
        return line


class OwnerLine:
    """What goes to one owner: a batch of thousands does not hold up who sends one job, and on a
    distributed store what one node does not take holds up nobody whose jobs go to another."""

    def __init__(self, platform: Platform, peers: Peers, url: str, waiting: WaitingJobs) -> None:
        self._waiting = waiting
        self._loop = asyncio.get_running_loop()
        self._platform = platform
        self._peers = peers
        self._url = url
        self._health = PeerHealth()
        self._clock = platform.clock
        self._seconds_max = platform.settings.store_wait_seconds + MARGIN_SECONDS
        self._commits: dict[tuple[int | None, bool], GroupCommit[Waiting]] = {}  # node, is heavy

    def _commit(self, node: int | None, *, heavy: bool) -> GroupCommit[Waiting]:
        commit = self._commits.get((node, heavy))
        if commit is None:
            commit = self._commits[node, heavy] = self._new_commit(heavy=heavy)
        return commit

    def _new_commit(self, *, heavy: bool) -> GroupCommit[Waiting]:
        return GroupCommit(
            "passed",
            self._flush,
            instruments=self._platform.instruments,
            sizes=SIZES,
            writes_max=CALLS_MAX,
            linger=Lingering(GATHER_SECONDS, counts="jobs" if heavy else "items"),
        )

    def is_resting(self) -> bool:
        return self._health.is_resting(self._clock.now_us())

    def ask(self, call: OwnerJobs, node: int | None) -> asyncio.Future[Told]:
        """`node` of the store: calls for others are not made with it."""
        told: asyncio.Future[Told] = self._loop.create_future()
        size_bytes = size_bytes_of(call.jobs)
        commit = self._commit(node, heavy=is_heavy(call.count, size_bytes))
        commit.add(Waiting(call, told, size_bytes))
        return told

    async def _flush(self, group: list[Waiting]) -> None:
        """One call for all of them; whatever happens, each is told."""
        for one in group:
            self._waiting.remove(one.call.tenant, one.call.count)
        group = [one for one in group if not one.told.done()]  # who waits no more is not sent
        rest, asked_us = Unanswered(is_open=True), self._clock.now_us()
        try:
            if not group or self.is_resting():
                rest = NOT_ASKED
            else:
                rest = await self._pass_on(group, asked_us)
        except BROKEN as error:
            self._failed(error, asked_us)
        finally:
            for one in group:
                if not one.told.done():
                    one.told.set_result(rest)

    async def _pass_on(self, group: list[Waiting], asked_us: int) -> Unanswered:
        """Answers what those are told of whom the owner said nothing."""
        self._health.ask(asked_us, round(self._seconds_max * 1e6))
        try:
            reply = await self._call(encode([one.call for one in group]))
        except (ConnectionRefusedError, NotReached) as error:
            self._failed(error, asked_us)
            return NOT_ASKED
        if reply.status == TOO_LARGE:
            self._health.answered()
        elif reply.status != 200:
            self._failed(OSError(f"HTTP {reply.status}"), asked_us)
        if reply.status != 200:  # it was not read: of another build, or too large
            return Unanswered(is_open=reply.status >= 500)
        told = decode_reply(reply.body)
        self._health.answered()
        for tenant, level in told.levels.items():
            self._platform.admission.learn(tenant, level, asked_us)
        for one, said in zip(group, told.items, strict=True):
            _tell(one, outcome_of(one.call, said))
        return Unanswered(is_open=True)

    async def _call(self, body: bytes) -> Reply:
        """Its answer: on the line that is there for small calls, else by a request of its own."""
        lines = cluster_lines(self._platform.cluster.secret)
        if len(body) <= FRAME_BYTES_MAX:
            line = self._peers.lines.ready(self._url)
            if line is None:
                line = await self._opened(lines)
            if line is not None and line.has_room:
                return await self._by_line(line, body)
        client = self._peers.client(self._url, for_staff=True)
        asked = client.call("POST", SUBMIT_PATH, body, self._seconds_max, lines)
        return await self._while_owner(asyncio.create_task(asked, name="passed"))

    async def _opened(self, lines: str) -> OwnerConnection | None:
        """A process that has died is connected to all the same: its parent holds its address."""
        opening = self._peers.lines.to(self._url, lines, self._seconds_max)
        try:
            return await self._while_owner(asyncio.create_task(opening, name="line"))
        except (OSError, TimeoutError) as error:
            raise NotReached(repr(error)) from error

    async def _by_line(self, line: OwnerConnection, body: bytes) -> Reply:
        number, told = line.send(body)
        try:
            return await self._while_owner(told)
        finally:
            line.give_up(number)  # unless it was answered

    async def _while_owner(self, asked: asyncio.Future[Asked]) -> Asked:
        """What hangs is waited for only while it is an owner, and no longer than it may take."""
        ends_at = self._loop.time() + self._seconds_max
        try:
            while not (await asyncio.wait({asked}, timeout=OWNER_LOOK_SECONDS))[0]:
                if self._loop.time() >= ends_at:
                    raise TimeoutError("no answer in time")
                owners = self._platform.ownership.owners.values()
                if all(owner.owner_url != self._url for owner in owners):
                    raise TimeoutError("it owns nothing any more")
            return asked.result()
        finally:
            asked.cancel()

    def _failed(self, error: Exception, asked_us: int) -> None:
        self._health.failed(self._clock.now_us(), asked_us)
        log.warning(
            "owner gives no answer, jobs are written here", url=self._url, error=repr(error)
        )


def _tell(one: Waiting, told: list[Verdict] | FairwayError) -> None:
    if not one.told.done():
        is_taken = not (isinstance(told, FairwayError) and told.code in NOT_TAKEN)
        one.told.set_result(told if is_taken else NOT_ASKED)
