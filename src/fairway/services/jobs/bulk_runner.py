"""Works off acts on many jobs, for the shards this server owns: cancel, replay, discard.

A batch is one transaction: the jobs, and how far the action has come. So a server that dies in the
middle loses nothing and doubles nothing; the next owner goes on after the last batch. The rate is
the caller's; how fast replayed jobs then run is up to their tenant's fair share, and a tenant whose
queue is full is waited for. Nobody waits for another's action: a batch that the store refuses is
gone through job by job, and what is refused then is counted as failed; one that the store is too
busy for is tried less and less often.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeAlias

from fairway.core.backoff import backoff_seconds
from fairway.core.bulk import BulkAction
from fairway.core.errors import Unavailable
from fairway.core.ids import JobId, ShardId, TenantId, Term
from fairway.core.lifecycle import State
from fairway.runtime.telemetry import logger
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.jobs.control import Control, Ending
from fairway.services.jobs.dead_letters import DeadLetters
from fairway.services.jobs.watchers import Watchers
from fairway.services.registry.tenants_and_keys import Directory
from fairway.store import bulk_actions as actions
from fairway.store import dead_letters, history
from fairway.store.bulk_actions import RunningAction, Step
from fairway.store.connections.database import Connection, Database
from fairway.store.connections.error_classes import has_answered, is_about_rows, reason_of
from fairway.store.dead_letters import Replay, Walk
from fairway.store.flow_locks import FlowsBusy, Wait

log = logger("bulk actions")

BATCH_MAX = 500
BATCHES_PER_SECOND = 5
ACTIONS_READ_MAX = 5_000  # narrow rows; a tenant may have ten
ACTIONS_PER_ROUND = 50
REST_SECONDS = 1.0
TRIES_MAX = 3  # of a batch that the store refuses; then job by job
FAILED_MAX = 1_000  # jobs that the store refuses, of one action
PAUSE_SECONDS = 0.5  # after the first failure; doubles
PAUSE_SECONDS_MAX = 60.0

#: What is left to be done once a batch is on disk.
Afterwards: TypeAlias = Callable[[], Awaitable[None]]


class Batch(NamedTuple):
    """What was done within a transaction."""

    ids: Sequence[JobId]  # that were met
    done: int
    afterwards: Afterwards


class BatchTurn(NamedTuple):
    """One batch of one action, within its transaction."""

    connection: Connection
    shard: ShardId
    term: Term
    action: BulkAction
    limit: int
    inserting: list[JobId]  # that a read must not bring before they are announced
    to_cancel: list[history.LiveJob]  # that must not start if this is on disk


class BulkRunner:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        directory: Directory,
        dead_letters: DeadLetters,
        control: Control,
        watchers: Watchers,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._directory = directory
        self._dead_letters = dead_letters
        self._control = control
        self._watchers = watchers
        self._next_us: dict[str, int] = {}  # action → when its next batch may begin
        self._tries: dict[str, int] = {}  # action → failures in a row
        self._singly: dict[str, int] = {}  # action → how many to go job by job
        self._unsure: list[tuple[ShardId, TenantId, list[history.LiveJob]]] = []

    async def run_once(self, now_us: int) -> float:
        await self._make_sure()
        running: set[str] = set()
        for shard in self._dispatcher.open_shards():
            async with self._database.background() as connection:
                found = await actions.running(connection, shard, ACTIONS_READ_MAX)
            running.update(action.id for action in found)
            for action in self._due(found, now_us):
                await self._try_to_advance(shard, action, now_us)
        self._next_us = {one: self._next_us.get(one, 0) for one in running}
        self._tries = {one: tries for one, tries in self._tries.items() if one in running}
        self._singly = {one: left for one, left in self._singly.items() if one in running}
        soonest_us = min(self._next_us.values(), default=now_us + round(REST_SECONDS * 1e6))
        return min(max((soonest_us - now_us) / 1e6, 0.01), REST_SECONDS)

    def _due(self, found: list[RunningAction], now_us: int) -> list[RunningAction]:
        """Those whose batch may begin, the longest due first: many must not keep out the rest."""
        due = [one for one in found if now_us >= self._next_us.get(one.id, 0)]
        due.sort(key=lambda one: self._next_us.get(one.id, 0))
        chosen = []
        for one in due:
            if one.act != "replay" or self._has_room(one):
                chosen.append(one)
            else:  # its tenant's queue is full: looked at again, not again and again
                self._next_us[one.id] = now_us + round(REST_SECONDS * 1e6)
        return chosen[:ACTIONS_PER_ROUND]

    def _has_room(self, action: RunningAction) -> bool:
        tenant = self._directory.tenants.get(action.tenant)
        depth = self._dispatcher.depth_of(action.tenant)
        return tenant is not None and depth + _batch(action.per_second) <= tenant.depth_limit

    # -- what goes wrong -----------------------------------------------------------------------

    async def _try_to_advance(self, shard: ShardId, action: RunningAction, now_us: int) -> None:
        """What goes wrong with one action is its own affair."""
        try:
            await self._advance(shard, action, now_us)
        except Exception as error:
            is_refused = is_about_rows(error)
            if not is_refused and not has_answered(error):
                raise  # the store is away: there is nothing to be done for any of them
            tries = self._tries[action.id] = self._tries.get(action.id, 0) + 1
            pause_seconds = backoff_seconds(PAUSE_SECONDS, tries - 1, PAUSE_SECONDS_MAX)
            self._next_us[action.id] = now_us + round(pause_seconds * 1e6)
            log.error("bulk action held up", action=action.id, tries=tries, error=repr(error))
            if is_refused and (tries >= TRIES_MAX or action.id in self._singly):
                await self._set_aside(shard, action, reason_of(error))
                self._next_us[action.id] = now_us
        else:
            self._tries.pop(action.id, None)

    async def _set_aside(self, shard: ShardId, running: RunningAction, reason: str) -> None:
        """From now on job by job; or the one job that it stands at is left as it is."""
        self._tries.pop(running.id, None)
        if running.id not in self._singly:
            self._singly[running.id] = _batch(running.per_second)
            return
        term = self._dispatcher.term_of(shard)
        if term is None:
            return
        async with self._database.background() as connection, connection.transaction():
            action = await actions.lock(connection, shard, running.tenant, running.id)
            if action is None:
                return
            if action.failed >= FAILED_MAX:
                await actions.fail(connection, shard, term, running, reason)
                return
            ids = await self._next(connection, shard, action, 1)
            cursor = ids[-1] if ids else action.cursor
            step = Step(0, 0, len(ids), cursor, is_over=not ids, error=reason)
            await actions.move(connection, shard, term, action, step)

    # -- a batch -------------------------------------------------------------------------------

    async def _advance(self, shard: ShardId, running: RunningAction, now_us: int) -> None:
        term = self._dispatcher.term_of(shard)
        if term is None:
            return
        limit = 1 if self._singly.get(running.id) else _batch(running.per_second)
        inserting: list[JobId] = []
        to_cancel: list[history.LiveJob] = []
        try:
            async with self._database.background() as connection, connection.transaction():
                action = await actions.lock(connection, shard, running.tenant, running.id)
                if action is None:  # aborted or over
                    return
                turn = BatchTurn(connection, shard, term, action, limit, inserting, to_cancel)
                batch = await self._do(turn)
                step = _step(action, batch, limit)
                if not await actions.move(connection, shard, term, action, step):
                    raise NotOwner  # undo: another server owns the shard now
            await batch.afterwards()
        except (NotOwner, Unavailable):
            return
        except FlowsBusy:  # nothing of the batch is done; nobody else's waits for it
            self._next_us[running.id] = now_us + round(PAUSE_SECONDS * 1e6)
            return
        except BaseException:  # its commit may not have been heard
            if to_cancel:
                self._unsure.append((shard, running.tenant, to_cancel))
            raise
        finally:
            self._dispatcher.inserted(inserting)
        self._watchers.notify(batch.ids)
        self._count_down(running.id)
        self._next_us[action.id] = now_us + len(batch.ids) * 1_000_000 // action.per_second
        if step.is_over:
            jobs = action.done + step.done
            log.info("bulk action over", act=action.act, tenant=action.tenant, jobs=jobs)

    async def _make_sure(self) -> None:
        """Nobody heard whether these batches are on disk: what they cancelled must not start."""
        while self._unsure:
            shard, tenant, page = self._unsure[0]
            asked = [(tenant, job.id) for job in page]
            async with self._database.background() as connection:
                states = await history.read_states(connection, shard, asked)
            done = {job for job, (state, _) in states.items() if state == State.CANCELLED}
            await self._control.settle(tenant, Ending(page, done, 0))
            del self._unsure[0]

    def _count_down(self, action: str) -> None:
        """A batch's worth of single jobs; then batches again."""
        left = self._singly.pop(action, 0) - 1
        if left > 0:
            self._singly[action] = left

    async def _next(
        self, connection: Connection, shard: ShardId, action: BulkAction, limit: int
    ) -> list[JobId]:
        """Those that it meets next."""
        if action.act == "cancel":
            return [job.id for job in await self._live(connection, shard, action, limit)]
        walk = Walk(action.cursor, action.created_at, limit)
        wanted = action.wanted.dead
        return await dead_letters.next_dead(connection, shard, action.tenant, wanted, walk)

    async def _live(
        self, connection: Connection, shard: ShardId, action: BulkAction, limit: int
    ) -> list[history.LiveJob]:
        wanted = action.wanted.live(limit, before=action.cursor)
        return await history.live_jobs(connection, shard, action.tenant, wanted)

    async def _do(self, turn: BatchTurn) -> Batch:
        connection, shard, action = turn.connection, turn.shard, turn.action
        if action.act == "cancel":
            return await self._cancel(turn)
        ids = await self._next(connection, shard, action, turn.limit)
        if not ids:
            return Batch(ids, 0, _nothing)
        if action.act == "discard":
            done = await dead_letters.discard(connection, shard, turn.term, action.tenant, ids)
            return Batch(ids, done, _nothing)
        return await self._replay(turn, ids)

    async def _cancel(self, turn: BatchTurn) -> Batch:
        connection, shard, tenant = turn.connection, turn.shard, turn.action.tenant
        page = await self._live(connection, shard, turn.action, turn.limit)
        turn.to_cancel.extend(page)
        ending = await self._control.cancel_within(connection, shard, tenant, page, Wait.NOT)

        async def settle() -> None:
            await self._control.settle(tenant, ending)

        return Batch([job.id for job in page], len(ending.done) + ending.asked, settle)

    async def _replay(self, turn: BatchTurn, ids: list[JobId]) -> Batch:
        action, shard = turn.action, turn.shard
        wanted = Replay(action.tenant, ids, action.payload, self._dead_letters.replay_note())
        turn.inserting.extend(ids)
        self._dispatcher.inserting(ids)
        # Rows are locked by now: whoever has the lock of the flows may wait for one of them.
        jobs = await self._dead_letters.bring_back(
            turn.connection, shard, turn.term, wanted, Wait.NOT
        )

        async def arrive() -> None:
            self._dispatcher.arrived(shard, jobs)

        return Batch(ids, len(jobs), arrive)


class NotOwner(Exception):
    """The term is another's: nothing of the batch may stay."""


async def _nothing() -> None:
    return None


def _step(action: BulkAction, batch: Batch, limit: int) -> Step:
    met = len(batch.ids)
    cursor = batch.ids[-1] if batch.ids else action.cursor
    return Step(batch.done, met - batch.done, 0, cursor, is_over=met < limit)


def _batch(per_second: int) -> int:
    return min(max(per_second // BATCHES_PER_SECOND, 1), BATCH_MAX)
