"""Works off acts on many jobs, for the shards this server owns: cancel, replay, discard.

A batch is one transaction: the jobs, and how far the action has come. So a server that dies in the
middle loses nothing and doubles nothing; the next owner goes on after the last batch. The rate is
the caller's; how fast replayed jobs then run is up to their tenant's fair share, and a tenant whose
queue is full is waited for. Tenants have turns, one step each, and a step is short: it looks at so
many rows at most, whether or not any of them match. Nobody waits for another's action: a batch that
the store refuses is gone through job by job, and what is refused then is counted as failed; one
that the store is too busy for is tried less and less often, and given up in the end.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeAlias

from fairway.core.backoff import backoff_seconds
from fairway.core.bulk import HELD_UP_TRIES_MAX, BulkAction, is_hopeless
from fairway.core.errors import Unavailable
from fairway.core.ids import JobId, ShardId, TenantId, Term
from fairway.runtime.telemetry import logger
from fairway.services.busy_shards import busy_shards
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.jobs.control import Control
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
FORGOTTEN = "Its tenant was deleted, and its time to be restored is over: nothing is brought back."

#: What is left to be done once a batch is on disk.
Afterwards: TypeAlias = Callable[[], Awaitable[None]]


class Batch(NamedTuple):
    """What was done within a transaction."""

    ids: Sequence[JobId]  # that were met
    done: int
    afterwards: Afterwards
    cursor: str | None  # how far it has come; None: to the end
    asked_to_stop: int = 0


class HeldUp(NamedTuple):
    """An action that gets nowhere."""

    tries: int  # in a row
    since_us: int


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
        self._held_up: dict[str, HeldUp] = {}
        self._singly: dict[str, int] = {}  # action → how many to go job by job

    async def run_once(self, now_us: int) -> float:
        await self._control.make_sure()
        running: set[str] = set()
        shards = self._dispatcher.open_shards()
        for shard in await busy_shards(self._database, "with_actions", shards):
            async with self._database.background() as connection:
                found = await actions.running(connection, shard, ACTIONS_READ_MAX)
            running.update(action.id for action in found)
            for action in self._due(found, now_us):
                if self._may_be_forgotten(action):
                    await self._fail_if_forgotten(shard, action, now_us)
                else:
                    await self._try_to_advance(shard, action, now_us)
        self._next_us = {one: self._next_us.get(one, 0) for one in running}
        self._held_up = {one: held for one, held in self._held_up.items() if one in running}
        self._singly = {one: left for one, left in self._singly.items() if one in running}
        soonest_us = min(self._next_us.values(), default=now_us + round(REST_SECONDS * 1e6))
        return min(max((soonest_us - now_us) / 1e6, 0.01), REST_SECONDS)

    def _due(self, found: list[RunningAction], now_us: int) -> list[RunningAction]:
        """One of each tenant, the longest due first: many must not keep out the rest."""
        due = [one for one in found if now_us >= self._next_us.get(one.id, 0)]
        due.sort(key=lambda one: self._next_us.get(one.id, 0))
        chosen: dict[TenantId, RunningAction] = {}
        for one in due:
            if one.tenant in chosen:
                continue
            if self._may_be_forgotten(one) or self._has_room(one):
                chosen[one.tenant] = one
            else:  # its tenant's queue is full: looked at again, not again and again
                self._next_us[one.id] = now_us + round(REST_SECONDS * 1e6)
        return list(chosen.values())[:ACTIONS_PER_ROUND]

    def _has_room(self, action: RunningAction) -> bool:
        tenant = self._directory.tenants.get(action.tenant)
        if action.act != "replay" or tenant is None:
            return True
        depth = self._dispatcher.depth_of(action.tenant)
        return depth + _batch(action.per_second) <= tenant.depth_limit

    def _may_be_forgotten(self, action: RunningAction) -> bool:
        """Nothing is brought back for a tenant that is deleted; one that nobody here knows may be
        so new that only the store does."""
        tenant = self._directory.tenants.get(action.tenant)
        return action.act == "replay" and (tenant is None or tenant.state == "deleted")

    async def _fail_if_forgotten(self, shard: ShardId, action: RunningAction, now_us: int) -> None:
        self._next_us[action.id] = now_us + round(REST_SECONDS * 1e6)
        term = self._dispatcher.term_of(shard)
        if term is None:
            return
        async with self._database.background() as connection:
            failed = await actions.fail(
                connection, shard, term, action, FORGOTTEN, if_forgotten=True
            )
        if failed:
            log.info("bulk action of a forgotten tenant", action=action.id)

    # -- what goes wrong -----------------------------------------------------------------------

    async def _try_to_advance(self, shard: ShardId, action: RunningAction, now_us: int) -> None:
        """What goes wrong with one action is its own affair."""
        try:
            await self._advance(shard, action, now_us)
        except Exception as error:
            is_refused = is_about_rows(error)
            if not is_refused and not has_answered(error):
                raise  # the store is away: there is nothing to be done for any of them
            held = self._held_up.get(action.id, HeldUp(0, now_us))
            held = self._held_up[action.id] = HeldUp(held.tries + 1, held.since_us)
            pause_seconds = backoff_seconds(PAUSE_SECONDS, held.tries - 1, PAUSE_SECONDS_MAX)
            self._next_us[action.id] = now_us + round(pause_seconds * 1e6)
            log.error("bulk action held up", action=action.id, tries=held.tries, error=repr(error))
            if is_refused and (held.tries >= TRIES_MAX or action.id in self._singly):
                await self._set_aside(shard, action, reason_of(error))
                self._next_us[action.id] = now_us
            elif is_hopeless(held.tries, (now_us - held.since_us) / 1e6):
                await self._give_up(shard, action, reason_of(error))
        else:
            self._held_up.pop(action.id, None)

    async def _give_up(self, shard: ShardId, action: RunningAction, reason: str) -> None:
        term = self._dispatcher.term_of(shard)
        if term is None:
            return
        said = f"It got no further in {HELD_UP_TRIES_MAX} tries: {reason}"
        async with self._database.background() as connection:
            await actions.fail(connection, shard, term, action, said)

    async def _set_aside(self, shard: ShardId, running: RunningAction, reason: str) -> None:
        """From now on job by job; or the one job that it stands at is left as it is."""
        self._held_up.pop(running.id, None)
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
            ids, cursor = await self._next(connection, shard, action, 1)
            is_over = cursor is None
            step = Step(0, 0, 0, len(ids), cursor or action.cursor, is_over, error=reason)
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
                step = _step(action, batch)
                if not await actions.move(connection, shard, term, action, step):
                    raise NotOwner  # undo: another server owns the shard now
            await batch.afterwards()
        except (NotOwner, Unavailable, FlowsBusy):  # nothing of it is done; nobody else's waits
            self._next_us[running.id] = now_us + round(PAUSE_SECONDS * 1e6)
            return
        except BaseException:  # its commit may not have been heard
            self._control.unheard.add(shard, running.tenant, to_cancel)
            raise
        finally:
            self._dispatcher.inserted(inserting)
        self._watchers.notify(batch.ids)
        self._count_down(running.id)
        self._next_us[action.id] = now_us + len(batch.ids) * 1_000_000 // action.per_second
        if step.is_over:
            jobs = action.done + step.done
            log.info("bulk action over", act=action.act, tenant=action.tenant, jobs=jobs)

    def _count_down(self, action: str) -> None:
        """A batch's worth of single jobs; then batches again."""
        left = self._singly.pop(action, 0) - 1
        if left > 0:
            self._singly[action] = left

    async def _next(
        self, connection: Connection, shard: ShardId, action: BulkAction, limit: int
    ) -> tuple[list[JobId], str | None]:
        """Those that it meets next, and how far that is; None: to the end."""
        if action.act == "cancel":
            part = await self._live(connection, shard, action, limit)
            return [job.id for job in part.jobs], part.cursor
        walk = Walk(action.cursor, action.created_at, limit)
        wanted = action.wanted.dead
        ids = await dead_letters.next_dead(connection, shard, action.tenant, wanted, walk)
        return ids, ids[-1] if len(ids) == limit else None

    async def _live(
        self, connection: Connection, shard: ShardId, action: BulkAction, limit: int
    ) -> history.LivePart:
        wanted = action.wanted.live(limit, before=action.cursor)
        return await history.live_jobs(connection, shard, action.tenant, wanted)

    async def _do(self, turn: BatchTurn) -> Batch:
        connection, shard, action = turn.connection, turn.shard, turn.action
        if action.act == "cancel":
            return await self._cancel(turn)
        ids, cursor = await self._next(connection, shard, action, turn.limit)
        if not ids:
            return Batch(ids, 0, _nothing, cursor)
        if action.act == "discard":
            done = await dead_letters.discard(connection, shard, turn.term, action.tenant, ids)
            return Batch(ids, done, _nothing, cursor)
        return await self._replay(turn, ids, cursor)

    async def _cancel(self, turn: BatchTurn) -> Batch:
        connection, shard, tenant = turn.connection, turn.shard, turn.action.tenant
        part = await self._live(connection, shard, turn.action, turn.limit)
        if not part.jobs:
            return Batch([], 0, _nothing, part.cursor)
        turn.to_cancel.extend(part.jobs)
        ending = await self._control.cancel_within(connection, shard, tenant, part.jobs, Wait.NOT)

        async def settle() -> None:
            await self._control.settle(tenant, ending)

        ids = [job.id for job in part.jobs]
        return Batch(ids, len(ending.done), settle, part.cursor, ending.asked)

    async def _replay(self, turn: BatchTurn, ids: list[JobId], cursor: str | None) -> Batch:
        action, shard = turn.action, turn.shard
        wanted = Replay(action.tenant, ids, action.payload, self._dead_letters.replay_note())
        turn.inserting.extend(ids)
        self._dispatcher.inserting(ids)
        # Rows are locked by now: whoever has the lock of the flows may wait for one of them.
        jobs = await self._dead_letters.bring_back(
            turn.connection, shard, turn.term, wanted, Wait.NOT
        )

        async def arrive() -> None:
            self._dispatcher.arrived([shard], jobs)

        return Batch(ids, len(jobs), arrive, cursor)


class NotOwner(Exception):
    """The term is another's: nothing of the batch may stay."""


async def _nothing() -> None:
    return None


def _step(action: BulkAction, batch: Batch) -> Step:
    cursor = batch.ids[-1] if batch.ids else action.cursor
    cursor = batch.cursor or cursor
    skipped = len(batch.ids) - batch.done - batch.asked_to_stop
    return Step(batch.done, batch.asked_to_stop, skipped, 0, cursor, is_over=batch.cursor is None)


def _batch(per_second: int) -> int:
    return min(max(per_second // BATCHES_PER_SECOND, 1), BATCH_MAX)
