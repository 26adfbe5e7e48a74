"""Services that nobody asks anything: each is made for its loop alone, and joined here.

Composition only. In which order loops start and stop is the table of `Platform._steps`; what each
does in a round, and how long it rests, is its own.
"""

from __future__ import annotations

from datetime import timedelta

from fairway.core.scheduling.promotion import PromotionCaps
from fairway.services.dispatch.backlog_reconciler import BacklogReconciler
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.dispatch.pulls import Pulls
from fairway.services.dispatch.refiller import Refiller
from fairway.services.job_services import JobServices
from fairway.services.jobs.bulk_runner import BulkRunner
from fairway.services.jobs.flow_cascades import FlowCascades
from fairway.services.maintenance.deleted_tenants import DeletedTenants
from fairway.services.maintenance.pruner import Pruner
from fairway.services.maintenance.tenant_mover import TenantMover
from fairway.services.object_storage.large_data import LargeData
from fairway.services.object_storage.object_janitor import Janitor
from fairway.services.ownership.ownership import Ownership
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.registry.type_name_expiry import TypeNameExpiry
from fairway.services.scheduling.expirer import Expirer, LatenessCheck
from fairway.services.scheduling.promoter import Promoter
from fairway.services.server_parts import ServerParts
from fairway.services.workers.rescuer import Rescuer
from fairway.services.workers.suspensions import Suspensions
from fairway.services.workers.time_limits import TimeLimitWatch


class LoopServices:
    def __init__(
        self,
        parts: ServerParts,
        dispatcher: Dispatcher,
        directory: Directory,
        jobs: JobServices,
        ownership: Ownership,
        large_data: LargeData,
        lateness: LatenessCheck,
        suspensions: Suspensions,
    ) -> None:
        database, settings, store_clock = parts.database, parts.settings, parts.store_clock
        metrics, watchers = parts.instruments.metrics, parts.watchers
        self.refiller = Refiller(database, dispatcher)
        self.pulls = Pulls(database, dispatcher, store_clock, metrics)
        self.reconciler = BacklogReconciler(database, dispatcher, lambda: ownership.has_peers)
        self.time_limits = TimeLimitWatch(dispatcher, metrics, settings.timeout_grace_seconds)
        self.rescuer = Rescuer(database, dispatcher, settings)
        caps = PromotionCaps(
            jobs_per_second=settings.promote_per_second,
            tenant_jobs_per_second=settings.promote_tenant_per_second,
        )
        self.promoter = Promoter(database, dispatcher, metrics, parts.clock, caps)
        self.expirer = Expirer(database, dispatcher, watchers, lateness)
        self.flow_cascades = FlowCascades(database, dispatcher, watchers)
        self.bulk_runner = BulkRunner(
            database, dispatcher, directory, jobs.dead_letters, jobs.control, watchers
        )
        self.pruner = Pruner(database, dispatcher, store_clock, parts.instruments, settings)
        self.janitor = Janitor(
            database, dispatcher, large_data.objects, store_clock, settings.retention_days
        )
        self.deleted_tenants = DeletedTenants(
            database,
            dispatcher,
            jobs.control,
            store_clock,
            deleted=suspensions.deleted,
            forget=suspensions.forget,
            kept=timedelta(days=settings.deleted_tenant_days),
            tenant_shards=parts.tenant_shards,
        )
        self.tenant_mover = TenantMover(database, dispatcher, directory, parts.clock, ownership)
        self.type_name_expiry = TypeNameExpiry(
            database, dispatcher, directory.names, metrics, parts.tenant_shards
        )
