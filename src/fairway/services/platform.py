"""All services of one server, joined: what the API serves and what the loops keep going.

Composition only: who needs whom, what starts first, what stops last. Decides nothing.
"""

from __future__ import annotations

import asyncio
import random
import secrets

from fairway.core.backlog.backlog import WindowLimits
from fairway.core.fair_share.fairness import PoolShare
from fairway.core.pools import PoolTable
from fairway.core.scheduling.promotion import PromotionCaps
from fairway.runtime.clock import Clock
from fairway.runtime.loops import Loop, Step
from fairway.runtime.random_ids import lease_tokens
from fairway.runtime.settings import Settings
from fairway.runtime.stalls import StallWatch
from fairway.runtime.telemetry import Instruments, Metrics, logger
from fairway.services import shutdown
from fairway.services.backpressure.body_memory import BodyRooms
from fairway.services.backpressure.connection_turns import HotTurns
from fairway.services.backpressure.key_guesses import Guesses
from fairway.services.backpressure.waiting_places import HeavyLane, waiting_room
from fairway.services.dispatch.dispatcher import Dispatcher, DispatchSettings
from fairway.services.dispatch.fair_share_loop import ShareKeeper
from fairway.services.dispatch.ownership import Ownership
from fairway.services.dispatch.ports import LatePorts
from fairway.services.dispatch.reconciler import Sweeper
from fairway.services.dispatch.refiller import Refiller
from fairway.services.failure.failure_policy import Aftermath
from fairway.services.jobs.control import Control
from fairway.services.jobs.dead_letter_replayer import Replayer
from fairway.services.jobs.dead_letters import DeadLetters
from fairway.services.jobs.explainer import Explainer
from fairway.services.jobs.lookup import Insight
from fairway.services.jobs.watch import Watchers
from fairway.services.maintenance.checkpoint_watch import CheckpointWatch
from fairway.services.maintenance.gauges import Gauges
from fairway.services.maintenance.pruner import Pruner
from fairway.services.maintenance.reclassifier import Measuring
from fairway.services.maintenance.slow_statements import SlowStatements
from fairway.services.object_storage.checkpoints import Checkpoints
from fairway.services.object_storage.large_payloads import Vault
from fairway.services.object_storage.object_janitor import Janitor
from fairway.services.object_storage.storage_tie import StorageTie
from fairway.services.object_storage.uploads import UploadLimits, Uploads
from fairway.services.readiness import Readiness
from fairway.services.recording.lease_writer import LeaseWriter
from fairway.services.recording.recorder import Bounds, Recorder
from fairway.services.registry.job_types import Registry
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.registry.type_name_expiry import NameKeeper
from fairway.services.restraints.holds import HoldKeeper
from fairway.services.restraints.restraints import RestraintKeeper
from fairway.services.restraints.tenant_events import Bulletin
from fairway.services.scheduling.expirer import Expirer, Lateness
from fairway.services.scheduling.promoter import Promoter
from fairway.services.scheduling.schedules import ScheduleLimits, Schedules
from fairway.services.scheduling.ticker import Ticker
from fairway.services.schema import make_partitions, opened
from fairway.services.store_clock import StoreClock
from fairway.services.store_watch import StoreWatch
from fairway.services.submit.admission import Admission
from fairway.services.submit.submission import Submissions
from fairway.services.workers.exchange import Exchange
from fairway.services.workers.rescuer import Rescuer
from fairway.services.workers.revocation import Revocation
from fairway.services.workers.time_limits import Overtime
from fairway.services.workers.worker_list import Roster
from fairway.store import leadership
from fairway.store.connections.database import DISCONNECTED, Database
from fairway.store.object_storage.storage import Objects
from fairway.store.tenants import Cluster, found_cluster

log = logger("platform")

STOP_SECONDS_MAX = 10.0  # to write what can be, and to hand over


class Platform:
    """One server's services. `prepare` the database once, then `start`, then `stop`."""

    def __init__(
        self,
        database: Database,
        cluster: Cluster,
        settings: Settings,
        clock: Clock,
        scheduler: type[PoolShare] = PoolShare,
    ) -> None:
        self.settings = settings
        self.database = database
        self.cluster = cluster
        self.clock = clock
        self.metrics = Metrics()
        self.instruments = Instruments(clock, self.metrics)
        self.metrics.waiters.set_function(lambda: database.waiting)
        self.slow_statements = SlowStatements(database, self.metrics)
        database.slow_calls.on_slow = self.slow_statements.noticed
        self.stalls = StallWatch(self.metrics)
        self.store_watch = StoreWatch(database)
        self.store_clock = StoreClock(clock)
        self.watchers = Watchers()
        self.waiting = waiting_room(settings, self.metrics)
        self.heavy = HeavyLane(self.waiting)
        self.turns = HotTurns(database)
        self.bodies = BodyRooms(settings.body_room_bytes_max, self.metrics)
        self.directory = Directory(database, Guesses(self.instruments))
        self._join_dispatcher(scheduler)
        self._join_dispatching()
        self._join_front_door()
        self._join_answers()
        self._join_schedules()
        self.loops = self._loops()

    def _join_dispatcher(self, scheduler: type[PoolShare]) -> None:
        """Who decides what runs. Its ports are bound once those behind them are made."""
        settings = self.settings
        limits = WindowLimits(jobs_total=settings.window_jobs, bytes_total=settings.window_bytes)
        dispatching = DispatchSettings(
            limits=limits,
            tokens=lease_tokens(self.cluster.secret),
            inline_bytes_max=settings.inline_bytes_max,
            scheduler=scheduler,
            grace_seconds=settings.timeout_grace_seconds,
        )
        self.pools = pools = PoolTable()
        self.aftermath = Aftermath(
            self.store_clock, pools, jitter=random.Random().random, on_news=self._restrain
        )
        self.lateness = Lateness(self.directory, self.store_clock, self.metrics)
        self._late_ports = LatePorts.unbound()
        self.dispatcher = Dispatcher(
            dispatching, self._late_ports.sorting_by(self.lateness.sort_out), self.aftermath, pools,
            clock=self.store_clock, metrics=self.metrics,
        )  # fmt: skip

    def _join_dispatching(self) -> None:
        """Those that keep the dispatcher told, and write down what it decides."""
        database, settings = self.database, self.settings
        self.directory.on_tenant = self.dispatcher.set_terms
        self.revocation = Revocation(self.dispatcher, self.clock)
        self.registry = Registry(database, self.directory, self.pools)
        self.registry.on_pools = self._pools_changed
        self.registry.on_unsaid = self.dispatcher.hear_anew
        self.holds = HoldKeeper(database, self.dispatcher)
        self.restraints = RestraintKeeper(
            database,
            self.dispatcher,
            self.aftermath,
            self.directory,
            self.holds,
            clock=self.clock,
        )
        bounds = Bounds(
            self.cluster.shard_count, settings.inline_bytes_max, settings.results_waiting_bytes_max
        )
        self.recorder = Recorder(
            database, self.dispatcher, self.watchers, self.store_clock, self.instruments, bounds
        )
        self.lease_writer = LeaseWriter(
            database, self.dispatcher, self.watchers, self.instruments,
            shard_count=self.cluster.shard_count, lazy_after_ms=settings.lazy_running_ms,
        )  # fmt: skip
        self._late_ports.record_ends.bind(self.recorder.record)
        self._late_ports.write_leases.bind(self.lease_writer.write)
        self.measuring = Measuring(
            database, self.dispatcher, self.registry, self.store_clock, self.clock, self.metrics
        )
        self.recorder.on_ends = self.measuring.observe
        self.registry.on_type, self.registry.on_let_go = self.measuring.learn, self.measuring.forget
        self.ownership = Ownership(
            database, self.dispatcher, self.store_clock, settings, clock=self.clock,
            server_name=secrets.token_hex(8),
        )  # fmt: skip
        self.share_keeper = ShareKeeper(
            database, self.dispatcher, self.clock, shard_count=self.cluster.shard_count
        )
        self.ownership.before_open = self.share_keeper.take_over
        self.directory.on_revoked = self.ownership.on_revoked = self.revocation.revoked

    def _join_front_door(self) -> None:
        """Where jobs come in and workers call."""
        self.admission = Admission(
            self.dispatcher, self.instruments, waiting_max=self.settings.submit_waiting_max
        )
        self.submissions = Submissions(
            self.database, self.directory, self.dispatcher, self.admission, self.instruments,
            shard_count=self.cluster.shard_count,
        )  # fmt: skip
        self.submissions.follow(self.store_clock)
        self.objects = Objects.open(self.settings.storage_url, self.settings.data_dir / "objects")
        self.storage_tie = StorageTie(self.database, self.objects, self.cluster, self.metrics)
        self.checkpoints = Checkpoints(self.database, self.objects, self.store_clock)
        limits = UploadLimits.of(self.settings)
        self.uploads = Uploads(self.objects, self.cluster, self.store_clock, limits)
        self.checkpoint_watch = CheckpointWatch(
            self.database, self.dispatcher, self.directory, self.metrics
        )
        self.vault = Vault(
            self.objects, self.cluster, self.store_clock, self.submissions.ids, self.uploads
        )
        self.recorder.large_results.keep = self.vault.keep_result
        self.exchange = Exchange(
            self.turns, self.registry, self.dispatcher, self.watchers, self.metrics, self.settings
        )
        self.exchange.has_room = self.recorder.large_results.has_room
        self.exchange.is_behind = self.recorder.is_behind
        self.exchange.is_aside = self.recorder.refused_ends.is_aside

    def _join_answers(self) -> None:
        """What people ask about jobs, and ask of them."""
        self.insight = Insight(
            self.database, self.dispatcher, self.watchers, self.store_clock, clock=self.clock,
            shard_count=self.cluster.shard_count,
        )  # fmt: skip
        self.explainer = Explainer(
            self.database, self.dispatcher, self.insight, self.share_keeper, self.checkpoints,
            self.store_clock,
        )  # fmt: skip
        self.explainer.result_waits = self.recorder.large_results.waiting.get
        self.control = Control(
            self.database, self.turns, self.dispatcher, self.insight, self.watchers,
            self.store_clock,
        )  # fmt: skip
        self.bulletin = Bulletin(self.database)
        self.dead_letters = DeadLetters(
            self.database, self.dispatcher, self.watchers, self.store_clock,
            shard_count=self.cluster.shard_count,
        )  # fmt: skip
        self.roster = Roster(self.dispatcher, self.clock)
        self.readiness = Readiness(self.database, self.cluster.shard_count, self.clock)

    def _join_schedules(self) -> None:
        """Recurring schedules: what tenants do with them, and who fires their ticks."""
        limits = ScheduleLimits(
            round(self.settings.schedule_seconds_min * 1000), self.settings.schedules_per_tenant
        )
        ids = self.submissions.ids
        self.schedules = Schedules(
            self.database, self.directory, ids, self.store_clock, limits, self.cluster.shard_count
        )
        self.schedules.on_scheduled = self.submissions.wrote_for_later
        self.schedules.in_turn, self.schedules.admit = self.heavy.run, self.submissions.admit
        self.ticker = Ticker(self.database, self.dispatcher, self.control, ids, self.metrics)

    @classmethod
    async def prepare(
        cls, dsn: str, settings: Settings, clock: Clock, scheduler: type[PoolShare] = PoolShare
    ) -> Platform:
        """Open the database, bring it to the present schema, and join or found the cluster."""
        database = await opened(dsn, settings)
        async with database.calm() as connection:
            cluster = await found_cluster(
                connection, settings.shard_count, secrets.token_urlsafe(32)
            )
            now, read_us = await leadership.database_now(connection), clock.now_us()
        async with database.upkeep() as connection:
            await make_partitions(connection, now)
        platform = cls(database, cluster, settings, clock, scheduler)
        platform.store_clock.was_read(now, read_us)
        return platform

    def _steps(self) -> dict[str, Step]:
        """What the loops do, each in rounds of its own."""
        dispatcher, database = self.dispatcher, self.database
        caps = PromotionCaps(
            jobs_per_second=self.settings.promote_per_second,
            tenant_jobs_per_second=self.settings.promote_tenant_per_second,
        )
        replayer = Replayer(database, dispatcher, self.directory, self.dead_letters, self.watchers)
        overtime = Overtime(dispatcher, self.metrics, self.settings.timeout_grace_seconds)
        pruner = Pruner(database, dispatcher, self.store_clock, self.instruments, self.settings)
        janitor = Janitor(
            database, dispatcher, self.objects, self.store_clock, self.settings.retention_days
        )
        return {
            "store watch": self.store_watch.run_once,
            "ownership": self.ownership.run_once,
            "directory": self.directory.run_once,
            "registry": self.registry.run_once,
            "measuring": self.measuring.run_once,
            "holds": self.holds.run_once,
            "fair share": self.share_keeper.run_once,
            "restraints": self.restraints.run_once,
            "refiller": Refiller(database, dispatcher).run_once,
            "sweeper": Sweeper(database, dispatcher, self.ownership).run_once,
            "lease_writer": self.lease_writer.run_once,
            "overtime": overtime.run_once,
            "rescuer": Rescuer(database, dispatcher, self.settings).run_once,
            "promoter": Promoter(database, dispatcher, self.metrics, self.clock, caps).run_once,
            "expirer": Expirer(database, dispatcher, self.watchers, self.lateness).run_once,
            "replayer": replayer.run_once,
            "ticker": self.ticker.run_once,
            "overlapping runs": self.ticker.cancel_runs,
            "pruner": pruner.run_once,
            "janitor": janitor.run_once,
            "job types": NameKeeper(
                database, dispatcher, self.directory.names, self.metrics, self.cluster.shard_count
            ).run_once,
            "checkpoint watch": self.checkpoint_watch.run_once,
            "insight": self.insight.run_once,
            "slow statements": self.slow_statements.run_once,
            "gauges": Gauges(dispatcher, self.metrics, self.store_clock).run_once,
        }

    def _loops(self) -> dict[str, Loop]:
        """The loops, and who wakes which."""
        loops = {name: Loop(name, step, self.clock) for name, step in self._steps().items()}
        self.store_watch.on_back = lambda: _wake(loops)
        self._late_ports.want_reads.bind(loops["refiller"].wake)
        self._late_ports.check()
        self.ownership.on_news = loops["ownership"].wake
        self.slow_statements.on_news = loops["slow statements"].wake
        self.recorder.on_scheduled = loops["promoter"].wake
        self.submissions.on_scheduled = loops["promoter"].wake
        self.control.on_scheduled = self.ticker.on_scheduled = loops["promoter"].wake
        self.schedules.on_change = loops["ticker"].wake
        self.ticker.on_cancel = loops["overlapping runs"].wake
        return loops

    def _restrain(self, tenants: set[int]) -> None:
        """Streams are held at once; the store and the tenant hear of it a moment later."""
        self.restraints.changed(tenants)
        self.loops["restraints"].wake()

    async def start(self) -> None:
        await self.directory.run_once(0)
        await self.registry.run_once(0)
        await self.directory.names.load()
        await self.holds.run_once(0)
        await self.restraints.run_once(0)
        for loop in self.loops.values():
            loop.start()
        self.stalls.start()

    def _pools_changed(self) -> None:
        """A pool is shared out by its tenants' terms from the moment it is known."""
        for tenant in self.directory.tenants.values():
            self.dispatcher.set_terms(tenant)

    async def let_go(self) -> None:
        """The server is about to stop: another goes on, and every call held open is answered."""
        await shutdown.hand_over(self.ownership, self.lease_writer, self.recorder)
        self.watchers.close()
        for session in self.dispatcher.all_sessions():
            session.ring()

    async def stop(self) -> None:
        """Finish what is under way, hand over, close; without the store, leave it to others."""
        self.stalls.stop()
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await shutdown.write_the_rest(self.submissions.drain(), self.recorder.drain())
                await self._stop_loops()
                await self.ownership.resign()  # unless that is done already
                await self.ownership.close()
        except DISCONNECTED as error:
            log.warning("store away, stopped without handing over", error=repr(error))
            await self._stop_loops()
            self.database.terminate()
            return
        await shutdown.close(self.database)

    async def _stop_loops(self) -> None:
        for loop in self.loops.values():
            await loop.stop()


def _wake(loops: dict[str, Loop]) -> None:
    """The store is back: nobody need rest any longer because it was away."""
    for loop in loops.values():
        loop.wake()
