"""The server of `fairway up`, in a process of its own: should it die, another takes its place.

It serves at the address that `up` holds for it, on the PostgreSQL that `up` started; makes the keys
of a new data folder, says where everything is, and then that it is ready. SIGUSR1 closes the
intake: what runs goes on, new jobs are refused. What keeps it from ever being ready is said in a
sentence, and its exit status says that to start it again would not help.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import uvloop
from rich.console import Console

from fairway.api.dashboard.sign_ins import link_at
from fairway.api.dashboard.static_files import is_built
from fairway.cli.processes.data_folder import postgres_folder
from fairway.cli.processes.listening import listeners_of
from fairway.cli.processes.local_keys import FILE_NAME, LocalKeys, read_keys, write_keys
from fairway.cli.processes.process_part import of_one_process
from fairway.cli.processes.serve import serve
from fairway.cli.processes.server_process import CLOSE_INTAKE, READY_BEFORE
from fairway.cli.processes.signals import quit_now, stop_on_signals
from fairway.cli.processes.supervisor import CANNOT_START
from fairway.core.errors import Unavailable
from fairway.core.ids import TenantId
from fairway.core.keys import ApiKey
from fairway.core.server_processes import ProcessGroup
from fairway.core.sign_in import LINK_SECONDS
from fairway.core.tenant import TenantSettings
from fairway.runtime.lasting_output import outlive_readers
from fairway.runtime.log_options import LogOptions
from fairway.runtime.parent_death import follow
from fairway.runtime.random_ids import new_api_key
from fairway.runtime.service_manager import ServiceManager
from fairway.runtime.settings import Settings, load
from fairway.runtime.telemetry import log_as, logger
from fairway.services.platform import Platform
from fairway.services.registry.principal import KeyWish
from fairway.store.postgres.embedded import EmbeddedPostgres

log = logger("server")
screen = Console(stderr=True, highlight=False, soft_wrap=True)  # a key must stay in one piece


def up_server(*, autoscale: bool = False) -> int:
    """Serve for `fairway up`, which starts this; nobody else should."""
    from fairway.cli.main import sentence_of

    outlive_readers()
    parent = int(os.environ.get("FAIRWAY_DIE_WITH_PARENT", "0"))
    if parent and not follow(parent, signal.SIGTERM):
        return 0
    log_as(LogOptions.of(os.environ))
    settings = of_one_process(load(os.environ))
    server = UpServer(settings, ServiceManager.of(os.environ), scales=autoscale)
    try:
        uvloop.run(server.run())
    except Exception as error:
        if server.was_ready:
            raise
        sys.stderr.write(f"{sentence_of(error)}\n")
        return CANNOT_START
    return 0


class UpServer:
    def __init__(self, settings: Settings, manager: ServiceManager, *, scales: bool) -> None:
        self._settings = settings
        self._manager = manager
        self._scales = scales
        self._group = ProcessGroup.of(os.environ)
        self._stopping = asyncio.Event()
        self.was_ready = False

    async def run(self) -> None:
        stop_on_signals(self._stopping.set, leave=quit_now)
        listeners = listeners_of(os.environ, self._settings)
        await serve(self._address(), self._settings, listeners, self._stopping, self._ready)

    def _address(self) -> str:
        """Where PostgreSQL is: the one that was given, else the one in the data folder."""
        if self._settings.database_url is not None:
            return self._settings.database_url
        folder = postgres_folder(self._settings.data_dir)
        running = EmbeddedPostgres(folder, self._settings.postgres_bin).address_in_use()
        if running is None:
            raise Unavailable("The PostgreSQL of this data folder takes no connections.")
        return running

    async def _ready(self, platform: Platform) -> None:
        if self._stopping.is_set():
            return
        if self._group is None or self._group.number == 1:  # of several, one speaks for all
            await self._begin(platform)
        asyncio.get_running_loop().add_signal_handler(CLOSE_INTAKE, _close_intake, platform)
        self.was_ready = True
        if READY_BEFORE in os.environ:
            log.info("server ready", url=self._settings.url)
        self._manager.ready(f"at {self._settings.url}")

    async def _begin(self, platform: Platform) -> None:
        """The keys of a new data folder, and where everything is."""
        keys, are_new = await first_keys(platform, self._settings)
        if self._scales:
            await platform.insight.autoscaling.begin(os.cpu_count() or 1)
        if READY_BEFORE in os.environ and not are_new:
            return  # it was said, with a sign-in that need not be made again
        _announce(
            self._settings,
            keys if are_new else None,
            await self._dashboard(platform, keys),
            "" if platform.regions is None else platform.regions.homes.directory_region,
        )

    async def _dashboard(self, platform: Platform, keys: LocalKeys) -> str:
        """Where it is, with a sign-in that is good for one browser and ten minutes."""
        if not is_built():
            return "not built: run `make web`, then start again"
        operator = await platform.directory.authenticate(keys.operator_key)
        if operator is None:  # the key was revoked; whoever did it has another
            return f"{self._settings.programs_url}/ui"
        opened = await platform.sign_ins.add_link(operator.key_id)
        link = link_at(self._settings.programs_url, opened.token)
        return f"{link}  (once, within {LINK_SECONDS // 60} minutes; then `fairway dashboard`)"


def _close_intake(platform: Platform) -> None:
    platform.admission.close()
    platform.readiness.close()


# -- keys --------------------------------------------------------------------------------------


async def first_keys(platform: Platform, settings: Settings) -> tuple[LocalKeys, bool]:
    """The keys of this data folder, made on the first start; and whether that is now."""
    path = settings.data_dir / FILE_NAME
    keys, are_new = read_keys(path), False
    if keys is None or not await _are_known(platform, keys):
        keys, are_new = await _make_keys(platform, settings.programs_url), True
    keys.url = settings.programs_url
    write_keys(path, keys)
    return keys, are_new


async def _are_known(platform: Platform, keys: LocalKeys) -> bool:
    shown = keys.api_key or keys.operator_key
    return await platform.directory.authenticate(shown) is not None


def _makes_tenants(platform: Platform) -> bool:
    """Of several regions the directory alone: a tenant that another made by itself may have the
    name or the number that the directory gives to its next one, which it could not know then."""
    regions = platform.regions
    return regions is None or regions.homes.directory_region == regions.map.here


async def _make_keys(platform: Platform, url: str) -> LocalKeys:
    directory, tenant = platform.directory, None
    if _makes_tenants(platform):
        await directory.add_tenant("default", TenantSettings(tier="pro"))
        await directory.run_once(0)
        tenant = directory.tenant_ids["default"]

    async def make(scope: str, tenant: TenantId | None = None) -> ApiKey:
        key = new_api_key(scope)
        await directory.add_key(key, tenant, wish=KeyWish(f"fairway up: {scope}"))
        return key

    return LocalKeys(
        url=url,
        api_key="" if tenant is None else (await make("tenant", tenant)).text,
        worker_key=(await make("worker")).text,
        operator_key=(await make("operator")).text,
    )


def _announce(settings: Settings, new_keys: LocalKeys | None, page: str, directory: str) -> None:
    """Keys are shown when they are made, and never again: what is printed is often kept."""
    url = settings.programs_url
    screen.print(f"\n  [bold green]Fairway is up[/] at [bold]{url}[/]  (API: {url}/docs)")
    data = settings.data_dir.resolve()
    screen.print(f"  dashboard     {page}")
    if settings.region:
        said = "the directory" if directory == settings.region else f"the directory is {directory}"
        screen.print(
            f"  region        {settings.region}  ({said}, where tenants and keys are made)"
        )
    if new_keys is not None:
        if new_keys.api_key:
            screen.print(f"  tenant key    {new_keys.api_key}")
        screen.print(f"  operator key  {new_keys.operator_key}")
    screen.print(f"  keys          {data / FILE_NAME}  (not shown again)")
    screen.print(f"  data          {data}")
