"""Large data of one server, joined: where it lies, and who moves it there and back."""

from __future__ import annotations

from fairway.core.ownership.tenant_shards import TenantShards
from fairway.runtime.random_ids import JobIdFactory
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import Metrics
from fairway.services.backpressure.disk_reserve import DiskReserve
from fairway.services.object_storage.checkpoints import Checkpoints
from fairway.services.object_storage.large_payloads import LargePayloads
from fairway.services.object_storage.storage_binding import StorageBinding, StorageFailures
from fairway.services.object_storage.upload_accounts import UploadLimits
from fairway.services.object_storage.uploads import Uploads
from fairway.services.store_clock import StoreClock
from fairway.store.connections.database import Database
from fairway.store.object_storage.storage import Objects, Storage
from fairway.store.registry.tenants import Cluster


class LargeData:
    def __init__(
        self,
        database: Database,
        cluster: Cluster,
        tenant_shards: TenantShards,
        settings: Settings,
        store_clock: StoreClock,
        metrics: Metrics,
        job_ids: JobIdFactory,
    ) -> None:
        folder = settings.data_dir if settings.database_url is None else None
        self.disk_reserve = DiskReserve(folder, settings.disk_reserve_bytes)
        is_here = settings.storage_url is None  # on the same disk as the database
        room = self.disk_reserve if is_here else DiskReserve(None, 0)
        failures = StorageFailures(metrics)
        storage = Storage.open(settings.storage_url, settings.data_dir / "objects", failures.note)
        self.binding = StorageBinding(database, storage, cluster, failures)
        self.objects = Objects(storage, self.binding.hold)
        self.checkpoints = Checkpoints(database, self.objects, store_clock, room, tenant_shards)
        self.uploads = Uploads(self.objects, cluster, store_clock, UploadLimits.of(settings))
        self.payloads = LargePayloads(
            self.objects, tenant_shards, store_clock, job_ids, self.uploads, room
        )
