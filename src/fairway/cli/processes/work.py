"""`fairway worker`: from flags to a running keeper; beside it what an operator asks of workers."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from cyclopts import App, Parameter

from fairway.cli.processes.data_folder import make_data_folder
from fairway.cli.processes.local_keys import FILE_NAME, read_keys
from fairway.core.errors import InvalidRequest
from fairway.core.pools import BUILT_IN, BY_NAME
from fairway.core.run.process_limits import RunLimits
from fairway.runtime.lasting_output import outlive_readers
from fairway.runtime.log_options import FormatName, LevelName, choose
from fairway.runtime.parent_death import follow
from fairway.sdk.http.addresses import checked_urls as addresses_in
from fairway.sdk.limits import Limits
from fairway.wire.bounds import SLOTS_MAX
from fairway.wire.messages import POOL_PATTERN, POOL_WORDS
from fairway.worker.options import CEILING, WorkerOptions

if TYPE_CHECKING:
    from fairway.runtime.service_manager import ServiceManager

APP_NOT_LOADED = os.EX_CONFIG  # the exit status that says: do not start me again as I am
LIMITS = ("memory", "cpu", "file_size", "open_files", "processes")

Several: TypeAlias = Annotated[list[str] | None, Parameter(consume_multiple=True)]

app = App(name="worker", help="Run an app's jobs; or look after workers that run.")
app.command(
    "fairway.cli.workers:ls", name=("ls", "list"), help="The live workers and what they do."
)
app.command("fairway.cli.workers:drain", name="drain", help="Let one finish and leave.")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class WorkerFlags:
    """What a worker serves, of whom, and what its jobs may use."""

    pool: Annotated[
        Several,
        Parameter(
            help="Pools to serve, each as name or name=slots (default: short, medium and long)."
        ),
    ] = None
    slots: Annotated[
        int | None, Parameter(help="Slots in each pool that was named without a number.")
    ] = None
    url: Annotated[
        Several,
        Parameter(
            help="Servers to talk to (default FAIRWAY_URL, else what `fairway up` left here)."
        ),
    ] = None
    name: Annotated[
        str | None,
        Parameter(help="The worker's name in logs and lists (default: host and process id)."),
    ] = None
    grace: Annotated[
        float, Parameter(help="Seconds that running jobs get to finish after SIGTERM.")
    ] = 25.0
    limit: Annotated[
        Several,
        Parameter(
            help="The most that any job in a process of its own may use: memory=1GB, cpu=10m,"
            " file_size=1GB, open_files=256, processes=512 (the default). A job type may declare"
            " less."
        ),
    ] = None
    cgroup: Annotated[
        str | None,
        Parameter(
            help="Make control groups below this one (default FAIRWAY_CGROUP, else one that is"
            " delegated)."
        ),
    ] = None
    journal: Annotated[
        Path | None,
        Parameter(help="The folder of the outcome journal (default: journal in the data folder)."),
    ] = None
    label: Annotated[
        Several, Parameter(help="What this machine has, such as gpu; some pools ask for labels.")
    ] = None
    follow: Annotated[
        bool,
        Parameter(
            help="Speak to each server that owns jobs at the address that it gives; without it, to"
            " all of them through --url."
        ),
    ] = True
    warm: Annotated[
        Several,
        Parameter(
            help="What is ready here (images, models): job types with that warm_key are preferred."
        ),
    ] = None

    def options(self, target: str, environment: Mapping[str, str]) -> WorkerOptions:
        """Flags over the environment, over what `fairway up` left in this folder."""
        target, pools = named_app(target, self.pool)
        found_urls, api_key = find_platform(environment)
        return WorkerOptions(
            target=target,
            name=self.name or f"{socket.gethostname()}-{os.getpid()}",
            urls=checked_urls(self.url or found_urls),
            api_key=api_key,
            slots=parse_pools(pools, self.slots),
            grace_seconds=self.grace,
            build=environment.get("FAIRWAY_BUILD", ""),
            ceiling=parse_limits(self.limit or []),
            cgroup=self.cgroup or environment.get("FAIRWAY_CGROUP"),
            journal=self.journal or _journal_at(_data_dir(environment)),
            owns_process=True,
            labels=self.label or [],
            warm_keys=self.warm or [],
            follows_owners=self.follow,
        )


PLAIN = WorkerFlags()


@app.default
def worker(
    target: Annotated[str, Parameter(show_default=False)] = "",
    *,
    flags: WorkerFlags = PLAIN,
    log_level: LevelName | None = None,
    log_format: FormatName | None = None,
) -> int:
    """Run an app's jobs. SIGTERM or Ctrl-C finishes or hands back what runs; a second one at once.

    Parameters
    ----------
    target
        The app, as module:app or file.py:app.
    log_level
        The least that is logged here, of the worker and of what jobs say (default info).
    log_format
        Lines for people (text) or for programs (json); default: text on a terminal.
    """
    from fairway.runtime.telemetry import log_as  # here and below: `worker ls` needs none of it

    outlive_readers()
    log_as(choose(os.environ, log_level, log_format))
    return _run(flags.options(target, os.environ))


def _run(options: WorkerOptions) -> int:
    import uvloop

    from fairway.runtime.service_manager import ServiceManager
    from fairway.worker.runners.start_failures import AppNotLoaded

    parent = os.environ.get("FAIRWAY_DIE_WITH_PARENT")  # set by `fairway up`, which may be killed
    if parent is not None and not follow(int(parent), signal.SIGTERM):
        return 0
    manager = ServiceManager.of(os.environ)
    try:
        uvloop.run(_main(options, manager))
    except AppNotLoaded as error:
        sys.stderr.write(f"fairway: {error.message}\n")
        return APP_NOT_LOADED
    return 0


def _data_dir(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("FAIRWAY_DATA_DIR") or ".fairway")


def _journal_at(data_dir: Path) -> Path:
    try:
        make_data_folder(data_dir)
    except OSError:  # a disk that cannot be written to: the journal says so, and jobs run
        pass
    return data_dir / "journal"


def named_app(target: str, pools: list[str] | None) -> tuple[str, list[str] | None]:
    """An app that stands behind `--pool short` was read as a pool; no pool has a colon."""
    if not target and pools and ":" in pools[-1]:
        return pools[-1], pools[:-1]
    if not target:
        raise InvalidRequest("Which app? Name it first: fairway worker module:app --pool short.")
    return target, pools


def find_platform(environment: Mapping[str, str]) -> tuple[list[str], str]:
    """The servers to talk to and a worker's key: from the environment, else from this folder."""
    keys = read_keys(_data_dir(environment) / FILE_NAME)
    url = environment.get("FAIRWAY_URL") or (keys.url if keys else "http://127.0.0.1:8700")
    api_key = environment.get("FAIRWAY_API_KEY") or (keys.worker_key if keys else "")
    if not api_key:
        raise InvalidRequest(
            "No worker key: set FAIRWAY_API_KEY to one, or start `fairway up` in this folder first."
        )
    return url.split(","), api_key


def checked_urls(urls: list[str]) -> list[str]:
    """A worker tries for ever; an address that can never answer is better said at once."""
    if any(";" in url for url in urls):
        raise InvalidRequest(
            "A worker serves one region, and these addresses are of several (`;` stands between"
            " regions): give each worker those of its own region (--url or FAIRWAY_URL)."
        )
    try:
        return list(addresses_in(",".join(urls)))
    except ValueError as error:
        raise InvalidRequest(f"{error}.") from None


async def _main(options: WorkerOptions, manager: ServiceManager) -> None:
    from fairway.cli.processes.signals import quit_now, stop_on_signals
    from fairway.runtime import instruments
    from fairway.runtime.gc_tuning import tune_gc
    from fairway.worker.keeper import Keeper

    otlp, spans = instruments.of_worker(os.environ, options.name), None
    if otlp is not None and otlp.spans is not None:
        from fairway.worker.exchange.run_spans import RunSpans

        spans = RunSpans(otlp.spans, options.name)
    told = replace(options, on_ready=lambda: manager.ready(f"serves {options.target}"))
    keeper = Keeper(told, spans)

    def stop() -> None:
        manager.stopping("jobs that run finish or are handed back")
        keeper.stop()

    tune_gc()
    stop_on_signals(stop, keeper.hurry, quit_now)
    try:
        await keeper.run()
    finally:
        await instruments.close(otlp)


def parse_limits(texts: list[str]) -> RunLimits:
    """`["memory=1GB", "processes=64"]` over the default ceiling."""
    given: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in LIMITS or not value:
            raise InvalidRequest(f"--limit {text}: write it as one of {', '.join(LIMITS)} = value.")
        given[name] = int(value) if value.isdigit() else value
    try:
        terms = Limits(**given).terms
    except ValueError as error:
        raise InvalidRequest(f"--limit: {error}.") from None
    return replace(terms, processes=terms.processes or CEILING.processes)


def parse_pools(pools: list[str] | None, slots: int | None) -> dict[str, int]:
    """`["short=50", "long"]` as pool → slots; a pool without a number gets `slots` or its own."""
    found: dict[str, int] = {}
    for text in pools or [pool.name for pool in BUILT_IN]:
        name, _, number = text.partition("=")
        if not re.fullmatch(POOL_PATTERN, name):
            raise InvalidRequest(
                f"--pool {text}: {name!r} is no name of a pool; it must have {POOL_WORDS}."
            )
        if number and not number.isdigit():
            raise InvalidRequest(f"--pool {text}: slots must be a number, as in {name}=8.")
        given = int(number) if number else slots
        found[name] = _slots_default(name) if given is None else given
        if found[name] < 1:
            option = f"--pool {text}" if number else f"--slots {slots}"
            raise InvalidRequest(f"{option}: a pool needs at least one slot.")
    if sum(found.values()) > SLOTS_MAX:
        raise InvalidRequest(f"A worker has at most {SLOTS_MAX} slots in all; start several.")
    return found


def _slots_default(pool_name: str) -> int:
    """Of a pool that an operator added only the server knows more; it refuses one there is not."""
    return BY_NAME[pool_name].slots_default if pool_name in BY_NAME else 1
