"""Ownership of shards: one owner at a time, each under a term that only grows.

A server renews its terms several times before they run out. It trusts a term only until the
moment it asked plus the term's length, by its own monotonic clock: a server that was stopped and
resumed finds its trust gone and grants nothing, and whatever it still writes meets another term in
the same statement. A new owner first lets workers say what they run, then grants; unless the last
one let go of it cleanly, having written down all that they run.

    claim ──▶ read written leases ──▶ wait for workers' hellos ──▶ open ──▶ renew … ──▶ lost

Servers say with every round that they are there, and share the shards evenly: who has more than its
part hands some over, a few at a time (`spreading.py`). Each shard is trusted for itself: one whose
row cannot be renewed stops alone.

A server that is not to own shards takes none, unless nobody has owned one for long: then it stands
in (degraded mode, `standing_in.py`), under a term of its own, and gives way to the first owner.

After a promotion of a standby the store may know less than we do: what is ours is let go and taken
again, so that all of it is read anew.

Servers tell each other when a shard is taken or let go; one that does not hear it looks anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine
from contextlib import suppress
from typing import Any, NamedTuple

from fairway.core.ids import ShardId
from fairway.core.ownership.shard_sight import told
from fairway.core.server_processes import ServerIdentity
from fairway.runtime.clock import Clock
from fairway.runtime.loops import pause
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import logger
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.ownership.lost_shards import tell_lost
from fairway.services.ownership.move_times import CLAIMED, SUSPENDED, MoveTimes
from fairway.services.ownership.owner_connection import PATIENCE_SECONDS, OwnerConnection
from fairway.services.ownership.process_siblings import ProcessSiblings
from fairway.services.ownership.rate_hand_over import RateHandOver
from fairway.services.ownership.released_shards import ReleasedShards
from fairway.services.ownership.shards_read import AllShards, ShardsRead
from fairway.services.ownership.spreading import ClusterLook, Spreading
from fairway.services.ownership.standing_in import StandingIn
from fairway.services.ownership.takeover import TakeOver, TakeOverPorts
from fairway.services.store_clock import StoreClock
from fairway.store import leadership as store
from fairway.store.connections.connection_cache import Deadline
from fairway.store.connections.database import ROLLED_BACK, Connection, Database
from fairway.store.connections.node_errors import CancelledInDoubt
from fairway.store.leadership import Claim, Heartbeat, Owner, Server, ShardRow

log = logger("ownership")

#: For all statements of a round, as `PATIENCE_SECONDS`, on a distributed store: there it has some
#: for each part, and each has a time of its own. A slow round renews what it can, one that is cut
#: short renews nothing for long.
PATIENCE_OF_PARTS_SECONDS = 12.0
ROUNDS_PER_TERM = 5
LATE_ROUNDS = 2.5  # a heartbeat that is older is late
SETTLED_TERMS = 0.5  # a server that has been there for so long may be handed shards
LOCKED_SECONDS = 0.1  # until a free shard whose row somebody held is tried again
TRUST_PART = 0.9  # of a term; the rest covers clock drift and the last statement
HAND_OVER_SECONDS_MAX = 1.0  # to have all of a shard on disk; else it stays
WHOLE_LOOK_SECONDS = 0.01
ROUND_LOOK_SECONDS = 0.01


class OwnershipPorts(NamedTuple):
    """What a take-over needs done by others, and whom news of other owners wakes."""

    before_open: Callable[[Collection[ShardId]], Awaitable[None]]
    on_revoked: Callable[[Collection[str]], Awaitable[None]]  # keys
    on_news: Callable[[], None]
    on_committed: Callable[[], None]  # a tenant's own transaction, with jobs in it
    write_leases: Callable[[Collection[ShardId]], Awaitable[None]]  # all that workers run of these


class Ownership:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        store_clock: StoreClock,
        settings: Settings,
        ports: OwnershipPorts,
        *,
        clock: Clock,
        server: ServerIdentity,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._store_clock = store_clock
        self._settings = settings
        self._clock = clock
        self.server_name = server_name = server.name
        self._siblings = ProcessSiblings(server.group, share_work=settings.consolidate_processes)
        self._connection = OwnerConnection(database, ports.on_news, ports.on_committed)
        self._takeovers: set[asyncio.Task[None]] = set()
        self._speaking = asyncio.Lock()  # with the store about terms: one thing at a time
        self._handed_over: set[ShardId] = set()  # shards that came to us with all of it on disk
        self.owners: dict[ShardId, Owner] = {}
        self._shards = ShardsRead(settings.term_seconds, clock, self._siblings)
        self._standing_in = StandingIn(settings, clock, server_name)
        self._spreading = Spreading(server_name)
        self._giving: asyncio.Task[None] | None = None
        self.is_leaving = self.is_resigned = False
        self._rounds_begun = self._rounds_done = 0
        self._timeline = 0  # of the store when we last spoke with it
        self._away_since_us: int | None = None  # the store, as far as everybody else here knows
        self._ports = ports
        steps = TakeOverPorts(ports.before_open, ports.on_revoked, ports.on_news)
        self.moves = MoveTimes(clock)
        self._rates = RateHandOver(database, dispatcher)
        self._released = ReleasedShards(self._rates, self.moves)
        beside = self.moves, self._rates
        self._takeover = TakeOver(database, dispatcher, settings, steps, *beside, clock=clock)

    @property
    def has_peers(self) -> bool:
        """Whether another server owns something: then hints can be lost between us."""
        return any(owner.owner != self.server_name for owner in self.owners.values())

    def owner_url(self, shard: ShardId | None = None) -> str | None:
        """Where another owner (of this shard, or of any) is reached; None when there is none."""
        for owner in self.owners.values():
            if owner.owner != self.server_name and shard in (None, owner.shard):
                return owner.owner_url
        return None

    def peer_urls(self) -> set[str]:
        """Where all other owners are reached."""
        others = self.owners.values()
        return {one.owner_url for one in others if one.owner != self.server_name}

    def owned(self) -> set[ShardId]:
        return set(self._dispatcher.terms())

    @property
    def is_awaited(self) -> bool:
        """Whether others are there to go on after us, but own nothing that a worker knows of.
        While the store is away nobody takes anything, and what was seen last says nothing."""
        return self._spreading.is_awaited and not self._database.is_away

    async def about_to_leave(self) -> None:
        """Others take it into account from now on; what is ours is granted from as ever."""
        self.is_leaving = True
        await self.looked()

    async def looked(self) -> None:
        """Until a round that begins from now on is done: others know of us, and we of them."""
        wanted = self._rounds_begun + 1
        self._ports.on_news()
        while self._rounds_done < wanted:
            await pause(ROUND_LOOK_SECONDS)

    async def run_once(self, now_us: int) -> float:
        """Say that we are here, renew what is ours, take our part; several times a term."""
        rest_seconds = self._settings.term_seconds / ROUNDS_PER_TERM
        if self._is_cut_off(now_us):
            return rest_seconds
        is_one = self._database.placement is None
        least_seconds = PATIENCE_SECONDS if is_one else PATIENCE_OF_PARTS_SECONDS
        patience_seconds = max(self._settings.term_seconds, least_seconds)
        give: list[ShardId] = []
        async with (
            self._speaking,
            Deadline(await self._connection.get(), patience_seconds) as connection,
        ):
            asked_us = self._clock.now_us()
            self._rounds_begun = begun = self._rounds_begun + 1
            self._forget_what_was_before_a_promotion()
            await self._renew(connection, asked_us)
            servers = await self._beat(connection)
            await self._released.write(connection)
            look = await self._shards.read(connection)
            self._know(look.rows)
            if not self._settings.owns_shards:
                await self._stand_in(connection)
            elif not self.is_resigned:
                wanted, give = await self._share(connection, servers, look, asked_us)
                rest_seconds = min(rest_seconds, LOCKED_SECONDS) if wanted else rest_seconds
            ours = {row.shard for row in look.rows if self._is_ours(row)}
            if self._dispatcher.terms().keys() != ours:
                self._know((await self._shards.read(connection)).rows)
            self._rounds_done = begun
        if give and self._giving is None:
            self._giving = asyncio.create_task(self._hand_over(set(give)), name="hand over")
            self._giving.add_done_callback(self._gave)
        return rest_seconds

    def stop_granting(self) -> None:
        """About to stop: nothing more is granted or taken; terms hold until they are let go."""
        if not self.is_resigned:
            self.moves.note(SUSPENDED, self._dispatcher.terms())
        self.is_resigned = True
        self._dispatcher.trust_until(0)

    async def resign(self) -> None:
        """Let go at once: a clean stop need not make others wait for the term to end.

        What comes from now on is passed on. Safe to call twice; then what failed is tried again.
        """
        self.stop_granting()
        async with self._speaking:  # no renewal or claim of ours is under way
            whole = self._dispatcher.letting_go().whole_on_disk(self._handed_over)
            self._released.add(self._dispatcher.terms(), whole)
            if shards := list(self._dispatcher.terms()):
                self._rates.note(self._dispatcher.terms())
                self._dispatcher.close_shard(*shards)  # in one step with what is written
            async with self._database.background() as connection:
                await store.leave(connection, self.server_name)  # before others share them out
                await self._released.write(connection)

    async def close(self) -> None:
        for task in (*self._takeovers, *([self._giving] if self._giving else [])):
            task.cancel()
        await self._connection.close()

    def _is_cut_off(self, now_us: int) -> bool:
        """Whether the store is away for all but the leader's connection, for longer than a term.

        Then everything is refused here, and somebody else may do better. Nothing is given up: a
        term that nobody took is renewed when the store is back.
        """
        if not self._database.is_away:
            self._away_since_us = None
            return False
        if self._away_since_us is None:
            self._away_since_us = now_us
        return now_us - self._away_since_us > self._settings.term_seconds * 1e6

    def _forget_what_was_before_a_promotion(self) -> None:
        """A standby that did not have everything: jobs that ended here run there, for ever."""
        before, self._timeline = self._timeline, self._database.hosts.timeline
        if 0 < before < self._timeline:
            held = dict(self._dispatcher.terms())
            log.warning("a standby was promoted: shards are taken anew", shards=len(held))
            self._released.add(held)
            self._dispatcher.close_shard(*held)

    async def _beat(self, connection: Connection) -> list[Server]:
        """We are here; and who else is. Nobody, as far as we know, where that cannot be said."""
        term_seconds = self._settings.term_seconds
        said = Heartbeat(
            self.server_name,
            self._settings.url,
            owns_shards=self._settings.owns_shards,
            is_leaving=self.is_leaving or self.is_resigned,
            term_seconds=term_seconds,
            settle_seconds=term_seconds * SETTLED_TERMS,
            late_seconds=term_seconds * LATE_ROUNDS / ROUNDS_PER_TERM,
            process_group=self._siblings.shared_group,
            busy_per_mille=self._siblings.busy_per_mille(
                self._clock.now_us(), is_owner=bool(self._dispatcher.terms())
            ),
        )
        try:
            servers, now = await store.beat(connection, said)
        except (*ROLLED_BACK, CancelledInDoubt) as error:
            # Somebody holds our row: what is ours is renewed all the same.
            log.warning("heartbeat not taken", error=repr(error))
            return []
        self._store_clock.was_read(now, self._clock.now_us())
        dead = self._siblings.dead(one.name for one in servers)
        for name in dead:
            with suppress(*ROLLED_BACK, CancelledInDoubt):  # somebody holds it: next time
                await store.leave(connection, name)  # it can say so no more
        return [one for one in servers if one.name not in dead]

    async def _renew(self, connection: Connection, asked_us: int) -> None:
        """What cannot be renewed now, for somebody holds its row, is ours and not trusted."""
        held = dict(self._dispatcher.terms())
        term_seconds, opened = self._settings.term_seconds, set(self._dispatcher.open_shards())
        renewed = await store.renew_shards(connection, held, term_seconds, opened) if held else {}
        if lost := held.keys() - renewed.keys():
            self._dispatcher.close_shard(*lost)
            rows = (await self._shards.read(connection)).rows
            tell_lost(rows, {one: held[one] for one in lost}, self._settings.owns_shards)
        self._trust([shard for shard, is_renewed in renewed.items() if is_renewed], asked_us)

    def _trust(self, shards: Collection[ShardId], asked_us: int) -> None:
        if not self.is_resigned:
            until_us = asked_us + round(self._settings.term_seconds * TRUST_PART * 1e6)
            self._dispatcher.letting_go().trust(until_us, shards)

    def _know(self, rows: Collection[ShardRow]) -> None:
        """Who owns what, and how many there are. Workers hear at once of an owner new to them."""
        self._dispatcher.letting_go().counted(len(rows))
        known = {one.owner_url for one in self.owners.values()}
        self.owners = {row.shard: Owner(*row[:4]) for row in rows if row.has_owner}
        if known and not known.issuperset(one.owner_url for one in self.owners.values()):
            for session in self._dispatcher.all_sessions():
                session.wake()

    def _is_ours(self, row: ShardRow) -> bool:
        return row.has_owner and row.owner == self.server_name

    async def _share(
        self,
        connection: Connection,
        servers: list[Server],
        read: AllShards,
        asked_us: int,
    ) -> tuple[set[ShardId], list[ShardId]]:
        """Take our part of what is free; answers what is still to be got, and what to hand over."""
        dispatcher, to_be_had = self._dispatcher, read.to_be_had
        held, hopeless = dispatcher.terms(), self._takeover.hopeless()
        opened = dispatcher.open_shards()
        look = ClusterLook(servers, read.rows, to_be_had.keys(), held, opened, hopeless)
        take, give, give_up = self._spreading.part(look, self._clock.now_us())
        if give_up:
            log.error("shards cannot be opened here, for others to try", **told(give_up))
            self._released.add({shard: held[shard] for shard in give_up})
            dispatcher.close_shard(*give_up)
        if not take:
            return take, give
        taken = await store.claim_shards(
            connection,
            self.server_name,
            self._settings.url,
            self._settings.term_seconds,
            unrenewed=to_be_had,
            wanted=take,
        )
        if ahead := {one: read.unrenewed[one] for one in taken if one in read.unrenewed}:
            event = "shards taken before their terms' end: the database's clock went back"
            log.warning(event, **told(ahead), last_end=max(ahead.values()).isoformat())
        if bereft := taken.keys() & read.bereft.keys():
            log.warning("shards taken at once: their process died", **told(bereft))
        for shard, found in taken.items():
            claim = found._replace(is_early=shard in bereft)
            (self._handed_over.add if claim.was_handed_over else self._handed_over.discard)(shard)
            self._begin(shard, claim, self._takeover.run(shard, claim))
        self._trust(taken.keys(), asked_us)
        return take - taken.keys(), give

    # -- handing over --------------------------------------------------------------------------

    async def _hand_over(self, shards: set[ShardId]) -> None:
        """Let these go for others to take: nothing of them is granted any more, and all is on disk.

        What cannot be had on disk soon stays: its workers would have to be asked.
        """
        letting_go = self._dispatcher.letting_go()
        letting_go.suspend(shards)
        self.moves.note(SUSPENDED, shards)
        try:
            async with asyncio.timeout(HAND_OVER_SECONDS_MAX):
                await self._ports.write_leases(shards)
                while not shards <= letting_go.whole_on_disk(()):
                    await pause(WHOLE_LOOK_SECONDS)
        except Exception as error:  # whatever it was: what stays here must be granted again
            log.info("not all of the shards is on disk", **told(shards), error=repr(error))
        async with self._speaking:
            held = self._dispatcher.terms()
            whole = shards & letting_go.whole_on_disk(())  # in one step with what follows
            if whole:
                terms = {shard: held[shard] for shard in whole}
                self._released.add(terms, whole)
                self._rates.note(terms)
                self._dispatcher.close_shard(*whole, is_whole=True)
            letting_go.resume(shards - whole)
            self._spreading.given(whole)
            self._spreading.not_given(shards - whole, self._clock.now_us())
            # Not by a pool: renewals of all other shards wait for us.
            async with Deadline(await self._connection.get(), PATIENCE_SECONDS) as connection:
                await self._released.write(connection)
        log.debug("shards handed over", **told(whole))

    def _gave(self, task: asyncio.Task[None]) -> None:
        self._giving = None
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("hand-over failed, the term ends by itself", error=repr(error))

    async def _stand_in(self, connection: Connection) -> None:
        """For shards that nobody has owned for long, on a server that is not to own any."""
        if self.is_resigned:
            return
        taken = await self._standing_in.take(connection, self._dispatcher.terms().keys())
        for shard, term in taken.items():
            self._handed_over.discard(shard)
            claim = Claim(term, was_handed_over=False)
            self._begin(shard, claim, self._takeover.run_for_pulls(shard, term))

    def _begin(self, shard: ShardId, claim: Claim, take_over: Coroutine[Any, Any, None]) -> None:
        self._released.taken_again(shard)
        self._dispatcher.claim_shard(shard, claim.term, is_whole=claim.was_handed_over)
        self.moves.note(CLAIMED, (shard,))
        task = asyncio.create_task(take_over, name=f"takeover:{shard}")
        self._takeovers.add(task)
        task.add_done_callback(self._took_over)

    def _took_over(self, task: asyncio.Task[None]) -> None:
        self._takeovers.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("take-over failed", error=repr(error))
