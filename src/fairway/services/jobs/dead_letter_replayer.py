"""Carries out replays and discards of many dead letters, for the shards this server owns.

A batch is one transaction: the jobs, and how far the action has come. So a server that dies in the
middle loses nothing and doubles nothing; the next owner goes on after the last batch. The rate is
the caller's; how fast the jobs then run is up to their tenant's fair share. A tenant whose queue is
full is waited for. Nobody waits for another's action: one that the store refuses is marked as
failed after a few tries, one that the store is too busy for is tried less and less often.
"""

from __future__ import annotations

from fairway.core.backoff import backoff_seconds
from fairway.core.failure.dead_letter import Action
from fairway.core.ids import JobId, ShardId, Term
from fairway.core.job import QueuedJob
from fairway.runtime.telemetry import logger
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.jobs.dead_letters import DeadLetters
from fairway.services.jobs.watchers import Watchers
from fairway.services.registry.tenants_and_keys import Directory
from fairway.store import dead_letter_actions as actions
from fairway.store import dead_letters as store
from fairway.store.connections.database import Connection, Database
from fairway.store.connections.error_classes import has_answered, is_about_rows, reason_of
from fairway.store.dead_letter_actions import RunningAction, Step
from fairway.store.dead_letters import Replay, Walk
from fairway.store.flow_locks import FlowsBusy, Wait

log = logger("replayer")

BATCH_MAX = 500
BATCHES_PER_SECOND = 5
ACTIONS_READ_MAX = 5_000  # narrow rows; a tenant may have ten
ACTIONS_PER_ROUND = 50
REST_SECONDS = 1.0
TRIES_MAX = 3  # of a batch that the store refuses
PAUSE_SECONDS = 0.5  # after the first failure; doubles
PAUSE_SECONDS_MAX = 60.0


class Replayer:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        directory: Directory,
        dead_letters: DeadLetters,
        watchers: Watchers,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._directory = directory
        self._dead_letters = dead_letters
        self._watchers = watchers
        self._next_us: dict[str, int] = {}  # action → when its next batch may begin
        self._tries: dict[str, int] = {}  # action → failures in a row

    async def run_once(self, now_us: int) -> float:
        running: set[str] = set()
        for shard in self._dispatcher.open_shards():
            async with self._database.background() as connection:
                found = await actions.running(connection, shard, ACTIONS_READ_MAX)
            running.update(action.id for action in found)
            for action in self._due(found, now_us):
                await self._try_to_advance(shard, action, now_us)
        self._next_us = {one: self._next_us.get(one, 0) for one in running}
        self._tries = {one: tries for one, tries in self._tries.items() if one in running}
        soonest_us = min(self._next_us.values(), default=now_us + round(REST_SECONDS * 1e6))
        return min(max((soonest_us - now_us) / 1e6, 0.01), REST_SECONDS)

    def _due(self, found: list[RunningAction], now_us: int) -> list[RunningAction]:
        """Those whose batch may begin, the longest due first: many must not keep out the rest."""
        due = [one for one in found if now_us >= self._next_us.get(one.id, 0)]
        due.sort(key=lambda one: self._next_us.get(one.id, 0))
        chosen = []
        for one in due:
            if self._has_room(one):
                chosen.append(one)
            else:  # its tenant's queue is full: looked at again, not again and again
                self._next_us[one.id] = now_us + round(REST_SECONDS * 1e6)
        return chosen[:ACTIONS_PER_ROUND]

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
            log.error("action failed", action=action.id, tries=tries, error=repr(error))
            if is_refused and tries >= TRIES_MAX:
                await self._give_up(shard, action, reason_of(error))
        else:
            self._tries.pop(action.id, None)

    async def _give_up(self, shard: ShardId, action: RunningAction, reason: str) -> None:
        term = self._dispatcher.term_of(shard)
        if term is not None:
            async with self._database.background() as connection:
                await actions.fail(connection, shard, term, action, reason)

    def _has_room(self, action: RunningAction) -> bool:
        tenant = self._directory.tenants.get(action.tenant)
        depth = self._dispatcher.depth_of(action.tenant)
        return tenant is not None and depth + _batch(action.per_second) <= tenant.depth_limit

    async def _advance(self, shard: ShardId, running: RunningAction, now_us: int) -> None:
        term = self._dispatcher.term_of(shard)
        if term is None:
            return
        ids: list[JobId] = []
        try:
            async with self._database.background() as connection, connection.transaction():
                action = await actions.lock(connection, shard, running.tenant, running.id)
                if action is None:  # aborted or over
                    return
                limit = _batch(action.per_second)
                walk = Walk(action.cursor, action.created_at, limit)
                ids = await store.next_dead(connection, shard, action.tenant, action.wanted, walk)
                self._dispatcher.inserting(ids)
                jobs, count = await self._do(connection, shard, term, action, ids)
                is_over = len(ids) < limit
                step = Step(count, ids[-1] if ids else action.cursor, is_over)
                if not await actions.move(connection, shard, term, action, step):
                    raise NotOwner  # undo: another server owns the shard now
            if jobs:
                self._dispatcher.arrived(shard, jobs)
        except NotOwner:
            return
        except FlowsBusy:  # nothing of the batch is done; nobody else's waits for it
            self._next_us[running.id] = now_us + round(PAUSE_SECONDS * 1e6)
            return
        finally:
            self._dispatcher.inserted(ids)
        self._watchers.notify(ids)
        self._next_us[action.id] = now_us + len(ids) * 1_000_000 // action.per_second
        if is_over:
            log.info(
                "action done", kind=action.kind, tenant=action.tenant, jobs=action.done + count
            )

    async def _do(
        self, connection: Connection, shard: ShardId, term: Term, action: Action, ids: list[JobId]
    ) -> tuple[list[QueuedJob], int]:
        if not ids:
            return [], 0
        if action.kind == "discard":
            return [], await store.discard(connection, shard, term, action.tenant, ids)
        wanted = Replay(action.tenant, ids, action.payload, self._dead_letters.replay_note())
        # Rows are locked by now: whoever has the lock of the flows may wait for one of them.
        bring_back = self._dead_letters.bring_back
        jobs = await bring_back(connection, shard, term, wanted, Wait.NOT)
        return jobs, len(jobs)


class NotOwner(Exception):
    """The term is another's: nothing of the batch may stay."""


def _batch(per_second: int) -> int:
    return min(max(per_second // BATCHES_PER_SECOND, 1), BATCH_MAX)
