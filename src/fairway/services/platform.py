"""All services of one server, joined: what the API serves and what the loops keep going.

Composition only: who needs whom, what starts first, what stops last. Decides nothing.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection, Sequence
from datetime import timedelta
from functools import partial

from fairway.core.fair_share.fairness import PoolShare
from fairway.core.ids import ShardId
from fairway.core.pools import PoolTable
from fairway.core.redaction import Redaction
from fairway.runtime.clock import Clock
from fairway.runtime.instruments import of_server, steps_of
from fairway.runtime.loops import Step, Wakeups
from fairway.runtime.random_ids import JobIdFactory, server_identity
from fairway.runtime.settings import Settings
from fairway.runtime.stalls import StallWatch
from fairway.runtime.telemetry import logger
from fairway.services import shutdown
from fairway.services.backpressure.body_memory import BodyRooms
from fairway.services.backpressure.connection_turns import HotTurns
from fairway.services.backpressure.key_guesses import Guesses
from fairway.services.backpressure.waiting_slots import HeavyWork, long_looks, waiting_room
from fairway.services.billing.billing import Billing, BillingPorts
from fairway.services.dispatch.fair_share_loop import FairShareLoop
from fairway.services.engine import Engine, EnginePorts, dispatch_settings
from fairway.services.events.events import EventPorts, Events
from fairway.services.insight.alarms import AlarmPorts, Alarms
from fairway.services.insight.insight import Insight
from fairway.services.insight.run_tally import RunTally
from fairway.services.job_services import JobServices
from fairway.services.jobs.bulk_actions import BulkActions
from fairway.services.jobs.far_runs import AskRuns, FarRuns
from fairway.services.jobs.watchers import Watchers
from fairway.services.loop_services import LoopServices
from fairway.services.maintenance.checkpoint_watch import CheckpointWatch
from fairway.services.maintenance.gauges import Gauges
from fairway.services.maintenance.reclassifier import Reclassifier
from fairway.services.maintenance.run_times import RunTimes
from fairway.services.maintenance.slow_statements import SlowStatements
from fairway.services.object_storage.large_data import LargeData
from fairway.services.ownership.ownership import Ownership, OwnershipPorts
from fairway.services.readiness import Readiness
from fairway.services.regions.regions import RegionPorts, joined_regions
from fairway.services.registry.audit_log import AuditLog
from fairway.services.registry.job_types import Registry
from fairway.services.registry.sign_ins import SignIns
from fairway.services.registry.tenant_states import TenantStates
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.registry.type_names import TypeNames
from fairway.services.registry.visits import Visits
from fairway.services.restraints.pauses import Pauses
from fairway.services.restraints.restraints import RestraintLoop
from fairway.services.restraints.tenant_restraints import TenantRestraints
from fairway.services.scheduling.expirer import LatenessCheck
from fairway.services.scheduling.schedules import ScheduleLimits, SchedulePorts, Schedules
from fairway.services.scheduling.ticker import Ticker, TickerPorts
from fairway.services.schema import make_partitions, opened
from fairway.services.server_parts import ServerParts
from fairway.services.sessions.sessions import End
from fairway.services.store_clock import StoreClock
from fairway.services.store_watch import WATCH, StoreWatch
from fairway.services.submit.admission import Admission
from fairway.services.submit.flow_intake import FlowIntake
from fairway.services.submit.follow_ups import FollowUpIntake
from fairway.services.submit.hints import Hints
from fairway.services.submit.outbox import Outbox
from fairway.services.submit.submission import SubmissionPorts, Submissions
from fairway.services.webhooks.outbound import SENDING, Outbound, OutboundPorts
from fairway.services.workers.exchange import Exchange, Intake
from fairway.services.workers.revocation import Revocation
from fairway.services.workers.suspensions import Suspensions
from fairway.services.workers.worker_list import WorkerList
from fairway.store import leadership
from fairway.store.connections.database import DISCONNECTED, Database
from fairway.store.registry.tenants import Cluster, found_cluster

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
        ask_runs: AskRuns,
        scheduler: type[PoolShare] = PoolShare,
    ) -> None:
        self.settings = settings
        self.database = database
        self.cluster = cluster
        self.tenant_shards = cluster.tenant_shards()
        self.clock = clock
        self.instruments = of_server(settings, clock)
        self.metrics = self.instruments.metrics
        self.metrics.waiters.set_function(lambda: database.waiting)
        self.wakeups = Wakeups({"slow statements": database.slow_calls.news})
        self.slow_statements = SlowStatements(database, self.metrics)
        self.stalls = StallWatch(self.metrics)
        self.store_watch = StoreWatch(database, self.wakeups.wake_all, self.wakeups.of(WATCH))
        self.store_clock = StoreClock(clock)
        self.watchers = Watchers()
        self._parts = ServerParts(
            database,
            settings,
            clock,
            self.store_clock,
            self.instruments,
            self.wakeups,
            self.watchers,
            self.tenant_shards,
        )
        self.waiting = waiting_room(settings, self.metrics)
        self.heavy = HeavyWork(self.waiting)
        self.long_looks = long_looks()
        self.turns = HotTurns(database)
        self.bodies = BodyRooms(settings.body_room_bytes_max, self.metrics)
        self.job_ids = JobIdFactory(self.store_clock, settings.region_number)
        kept_by = self.store_clock, self.metrics, self.job_ids
        self.large_data = LargeData(database, cluster, self.tenant_shards, settings, *kept_by)
        self._join_engine(scheduler)
        self._join_registry()
        self._join_submitting()
        self._join_workers()
        self._join_ownership()
        self._join_answers(ask_runs)
        self._join_schedules()
        self._join_billing()
        self._join_outbound()
        self._join_insight()
        self.loops = self.wakeups.loops(self._steps(), clock, self.stalls.stir, self.store_watch)

    def _join_insight(self) -> None:
        """What people see of all this: one look for metrics and read model."""
        self.insight = Insight(
            self.database,
            self.dispatcher,
            self.fair_share_loop,
            self.directory,
            self.metrics,
            self.store_clock,
            server=self.ownership.server_name,
            tenant_shards=self.tenant_shards,
        )
        look = self.insight.board.look
        gauges = Gauges(self.dispatcher, self.metrics, self.store_clock, look)
        regions = None if self.regions is None else self.regions.others
        send = self.wakeups.of(SENDING)
        ports = AlarmPorts(self.settings.data_dir, self.audit_log, send, regions)
        seen_in = self.database, self.dispatcher, self.insight, self.directory
        self.alarms = Alarms(*seen_in, self.store_clock, self.metrics, ports)
        steps = steps_of(self.instruments) | self.insight.steps() | self.alarms.steps()
        steps["sign-ins"] = self.sign_ins.run_once
        steps["slow statements"] = self.slow_statements.run_once
        self._insight_steps = {"gauges": gauges.run_once} | steps

    def _join_engine(self, scheduler: type[PoolShare]) -> None:
        """Who decides what runs and writes down what did, and what that leans on."""
        self.pools = PoolTable()
        self.type_names = TypeNames(self.database)
        self.lateness = LatenessCheck(self.type_names, self.store_clock, self.metrics)
        self.run_times = RunTimes(self.pools, self.store_clock, self.clock)
        tally = RunTally(self.pools, self.metrics, self.store_clock, self._ended)
        engine = Engine(
            self.database,
            self.settings,
            dispatch_settings(self.settings, self.cluster, self.tenant_shards, scheduler),
            self.pools,
            self.watchers,
            self.store_clock,
            self.instruments,
            EnginePorts(
                drop_expired=self.lateness.drop_expired,
                keep_result=self.large_data.payloads.keep_result,
                on_ends=tally.observe,
                on_scheduled=self.wakeups.of("promoter"),
                on_restrained=self.wakeups.of("restraints"),
                want_reads=self.wakeups.of("refiller"),
                lazy_lease=self.wakeups.of("lease_writer"),
            ),
        )
        self.failure_policy = engine.failure_policy
        self.dispatcher = engine.dispatcher
        self.holds = engine.holds
        self.recorder = engine.recorder
        self.lease_writer = engine.lease_writer

    def _join_registry(self) -> None:
        """What the dispatcher knows of tenants and job types, and who keeps it told."""
        database = self.database
        self.revocation = Revocation(self.dispatcher, self.clock)
        self.audit_log = AuditLog(Redaction(self.settings.redacted_fields.split(",")))
        hold = partial(self.holds.replace_for, "suspensions")
        self.suspensions = Suspensions(self.dispatcher, self.revocation, hold)
        self.directory = Directory(
            database,
            self.pools,
            self.type_names,
            on_tenant=self.dispatcher.set_entitlement,
            on_revoked=self.revocation.revoked,
            on_states=self.suspensions.learned,
            guesses=Guesses(self.instruments),
            audit_log=self.audit_log,
        )
        database.fence.told_to(self.directory.learn_moves)
        known = database, self.directory
        self.sign_ins = SignIns(*known, self.store_clock, self.audit_log, self.revocation.check)
        self.visits = Visits(*known, self.clock, self.audit_log)
        kept = timedelta(days=self.settings.deleted_tenant_days)
        self.tenant_states = TenantStates(database, self.directory, self.audit_log, kept=kept)
        self.registry = Registry(
            database,
            self.directory,
            self.run_times,
            on_unsaid=self.dispatcher.hear_anew,
            on_forgotten=self.dispatcher.forget_type,
            audit_log=self.audit_log,
        )
        self.reclassifier = Reclassifier(
            database, self.dispatcher, self.registry, self.run_times, self.metrics
        )
        self.checkpoint_watch = CheckpointWatch(
            database, self.dispatcher, self.directory, self.metrics
        )
        self.pauses = Pauses(database, self.holds, self.audit_log)
        self.restraints = RestraintLoop(
            database,
            self.dispatcher,
            self.failure_policy,
            self.directory,
            self.holds,
            clock=self.clock,
        )

    def _join_submitting(self) -> None:
        """Where jobs come in."""
        reserve = self.large_data.disk_reserve
        self.admission = Admission(self.dispatcher, self.instruments, self.settings, reserve)
        self.hints = Hints()
        self.events = Events(
            self.database,
            self.dispatcher,
            self.directory,
            self.instruments,
            self.audit_log,
            EventPorts(
                wake=self.wakeups.of("events"),
                wake_tails=self.wakeups.of("event tails"),
                on_moved=lambda heads: self.outbound.logs_grew(heads),
            ),
            tenant_shards=self.tenant_shards,
        )
        ports = SubmissionPorts(
            ids=self.job_ids,
            on_scheduled=self.wakeups.of("promoter"),
            hints=self.hints,
            on_replaced=self.watchers.notify,
            on_events=self.events.sequencer.written,
        )
        self.submissions = Submissions(
            self.database,
            self.directory,
            self.dispatcher,
            self.admission,
            self.instruments,
            self.store_clock,
            ports,
            tenant_shards=self.tenant_shards,
        )
        self.flow_intake = FlowIntake(
            self.turns,
            self.directory,
            self.dispatcher,
            self.submissions,
            self.hints,
            tenant_shards=self.tenant_shards,
        )
        self.outbox = Outbox(
            self.database,
            self.directory,
            self.dispatcher,
            self.submissions,
            self.admission,
            self.instruments,
        )

    def _join_workers(self) -> None:
        """Who hears workers."""
        intake = Intake(
            has_room=self.recorder.large_results.has_room,
            is_behind=self.recorder.is_behind,
            is_aside=self.recorder.refused_ends.is_aside,
            take_parent=FollowUpIntake(
                self.directory,
                self.dispatcher,
                self.admission,
                self.store_clock,
                self.recorder.large_results.give_back,
                self.instruments.spans,
            ).take,
        )
        self.exchange = Exchange(
            self.turns,
            self.registry,
            self.dispatcher,
            self.watchers,
            self.metrics,
            self.settings,
            intake,
        )

    def _join_ownership(self) -> None:
        """Whose shards are whose, and what a take-over brings along."""
        self.fair_share_loop = FairShareLoop(
            self.database, self.dispatcher, self.clock, tenant_shards=self.tenant_shards
        )
        ports = OwnershipPorts(
            before_open=self._before_open,
            on_revoked=self.revocation.revoked,
            on_news=self.wakeups.of("ownership"),
            on_committed=self.outbox.news.set,
            write_leases=self.lease_writer.write_all,
        )
        self.ownership = Ownership(
            self.database,
            self.dispatcher,
            self.store_clock,
            self.settings,
            ports,
            clock=self.clock,
            server=server_identity(),
        )
        told = self.watchers, self.hints, self.audit_log, self.wakeups.of("promoter")
        made_of = self.database, self.tenant_shards, self.settings, self.metrics, self.clock
        ours = RegionPorts(self.dispatcher, self.directory, self.holds, *told)
        self.regions = joined_regions(*made_of, ours)

    async def _before_open(self, shards: Collection[ShardId]) -> None:
        """What must hold before a job of them starts: who is suspended, and who owes what."""
        await self.directory.run_once(0)
        await self.billing.spend_caps.hear()
        await self.fair_share_loop.take_over(shards)

    def _join_answers(self, ask_runs: AskRuns) -> None:
        """What people ask about jobs, and ask of them."""
        ask = partial(ask_runs, self.cluster.secret)
        self._jobs = JobServices(
            self._parts,
            self.dispatcher,
            self.turns,
            FarRuns(self.store_clock, self.ownership.owner_url, ask),
            self.fair_share_loop,
            self.large_data.checkpoints,
            self.recorder.large_results.waiting.get,
        )
        self.job_lookup = self._jobs.lookup
        self.job_waits = self._jobs.waits
        self.many_waits = self._jobs.many_waits
        self.explainer = self._jobs.explainer
        self.control = self._jobs.control
        self.families = self._jobs.families
        self.log_watchers = self._jobs.log_watchers
        self.job_logs = self._jobs.logs
        self.run_logs = self._jobs.run_logs
        self.dead_letters = self._jobs.dead_letters
        self.flows = self._jobs.flows
        self.tenant_restraints = TenantRestraints(self.database, self.audit_log)
        self.worker_list = WorkerList(self.dispatcher, self.clock)
        counted = self.tenant_shards, self.clock, self.dispatcher.open_shards
        self.readiness = Readiness(self.database, *counted)

    def _join_schedules(self) -> None:
        """Acts on many jobs at once; recurring schedules, and who fires their ticks."""
        self.bulk_actions = BulkActions(
            self.database,
            self.directory,
            self.store_clock,
            tenant_shards=self.tenant_shards,
            on_begun=self.wakeups.of("bulk actions"),
            audit_log=self.audit_log,
        )
        limits = ScheduleLimits(
            round(self.settings.schedule_seconds_min * 1000), self.settings.schedules_per_tenant
        )
        ports = SchedulePorts(
            in_turn=self.heavy.run,
            admit=self.submissions.admit,
            on_change=self.wakeups.of("ticker"),
            on_scheduled=self.submissions.wrote_for_later,
            spans=self.instruments.spans,
            audit_log=self.audit_log,
        )
        self.schedules = Schedules(
            self.database,
            self.directory,
            self.job_ids,
            self.store_clock,
            limits,
            ports,
            tenant_shards=self.tenant_shards,
        )
        self.ticker = Ticker(
            self.database,
            self.dispatcher,
            self.control,
            self.job_ids,
            self.instruments,
            TickerPorts(
                directory=self.directory,
                on_scheduled=self.wakeups.of("promoter"),
                on_cancel=self.wakeups.of("overlapping runs"),
                is_full=self.admission.disk_reserve.is_low,
            ),
        )

    @classmethod
    async def prepare(
        cls,
        dsn: str,
        settings: Settings,
        clock: Clock,
        ask_runs: AskRuns,
        scheduler: type[PoolShare] = PoolShare,
    ) -> Platform:
        """Open the database, bring it to the present schema, and join or found the cluster."""
        database = await opened(dsn, settings)
        async with database.background() as connection:
            cluster = await found_cluster(
                connection, settings.shard_count, secrets.token_urlsafe(32)
            )
            now, read_us = await leadership.database_now(connection), clock.now_us()
        async with database.upkeep() as connection:
            await make_partitions(connection, now)
        platform = cls(database, cluster, settings, clock, ask_runs, scheduler)
        platform.store_clock.was_read(now, read_us)
        return platform

    def _join_billing(self) -> None:
        wake, currency = self.wakeups.of("spend caps"), self.settings.currency
        self.billing = Billing(
            self.database,
            self.dispatcher,
            self.directory,
            self.store_clock,
            self.clock,
            BillingPorts(self.holds, wake, self.audit_log, self.metrics, currency),
            tenant_shards=self.tenant_shards,
        )

    def _join_outbound(self) -> None:
        """What is sent to receivers of tenants' own choice."""
        self.outbound = Outbound(
            self.database,
            self.dispatcher,
            self.store_clock,
            self.instruments,
            self.settings,
            self.wakeups,
            OutboundPorts(self.events.settings.turn_on, self.audit_log, self.directory.parts.of),
            self.tenant_shards,
        )

    def _steps(self) -> dict[str, Step]:
        """What the loops do, each in rounds of its own."""
        alone = LoopServices(
            self._parts,
            self.dispatcher,
            self.directory,
            self._jobs,
            self.ownership,
            self.large_data,
            self.lateness,
            self.suspensions,
        )
        return {
            WATCH: self.store_watch.run_once,
            "disk reserve": self.admission.disk_reserve.run_once,
            "ownership": self.ownership.run_once,
            **self.directory.steps(),
            "registry": self.registry.run_once,
            "measuring": self.reclassifier.run_once,
            "pauses": self.pauses.run_once,
            "suspensions": self.suspensions.run_once,
            "fair share": self.fair_share_loop.run_once,
            "restraints": self.restraints.run_once,
            "refiller": alone.refiller.run_once,
            "pulls": alone.pulls.run_once,
            "sweeper": alone.reconciler.run_once,
            "lease_writer": self.lease_writer.run_once,
            "overtime": alone.time_limits.run_once,
            "rescuer": alone.rescuer.run_once,
            "promoter": alone.promoter.run_once,
            "events": self.events.sequencer.run_once,
            "event tails": self.events.tails.run_once,
            "expirer": alone.expirer.run_once,
            "flow cascades": alone.flow_cascades.run_once,
            "bulk actions": alone.bulk_runner.run_once,
            "ticker": self.ticker.run_once,
            "overlapping runs": self.ticker.cancel_runs,
            "pruner": alone.pruner.run_once,
            "janitor": alone.janitor.run_once,
            "deleted tenants": alone.deleted_tenants.run_once,
            "tenant moves": alone.tenant_mover.run_once,
            "job types": alone.type_name_expiry.run_once,
            "checkpoint watch": self.checkpoint_watch.run_once,
            "waits": self.job_waits.run_once,
            **self.outbound.steps,
            **self.billing.steps(),
            **self._insight_steps,
            **(self.regions.steps(self.ownership.run_once) if self.regions else {}),
        }

    def _ended(self, ends: Sequence[End]) -> None:
        self.run_times.observe(ends)
        self.events.sequencer.ended(ends)

    async def start(self) -> None:
        await self.directory.run_once(0)
        await self.registry.run_once(0)
        await self.directory.names.load()
        await self.pauses.run_once(0)
        await self.restraints.run_once(0)
        await self.billing.spend_caps.hear()
        for loop in self.loops.values():
            loop.start()
        self.stalls.start()

    async def let_go(self) -> None:
        """The server is about to stop: another goes on, and every call held open is answered."""
        await shutdown.hand_over(self.ownership, self.lease_writer, self.recorder)
        self.watchers.close()
        self.log_watchers.close()
        self.events.tails.close()
        self.insight.board.close()
        for session in self.dispatcher.all_sessions():
            session.wake()

    async def stop(self) -> None:
        """Finish what is under way, hand over, close; without the store, leave it to others."""
        self.stalls.stop()
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await shutdown.write_the_rest(self.submissions.drain(), self.recorder.drain())
                await self._stop_loops()
                await self.insight.minutes.close()
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
        await self.outbound.close()
