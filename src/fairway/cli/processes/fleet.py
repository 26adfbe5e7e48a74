"""`fairway fleet`: keeps as many workers as the autoscaler wants, here or elsewhere.

It decides nothing: the platform says how many workers a pool should have and which may go
(`GET /v1/autoscale`), and this starts, ends and replaces them. While the platform does not answer,
everything stays as it is, and what crashed is replaced. With a worker's key it can read that.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import uvloop
from cyclopts import Parameter

from fairway.cli.processes.fleet_command import CommandActuator
from fairway.cli.processes.fleet_kubernetes import DeploymentActuator, in_cluster
from fairway.cli.processes.fleet_workers import (
    AppCannotLoad,
    FleetTerms,
    FleetWorkers,
    worker_words,
)
from fairway.cli.processes.signals import stop_on_signals
from fairway.cli.processes.work import APP_NOT_LOADED, checked_urls, find_platform, parse_pools
from fairway.cli.remote import Remote
from fairway.core.autoscale.division import Part, PoolWish
from fairway.core.errors import FairwayError, InvalidRequest
from fairway.runtime.lasting_output import outlive_readers
from fairway.runtime.log_options import FormatName, LevelName, choose
from fairway.runtime.loops import pause
from fairway.runtime.parent_death import follow
from fairway.runtime.service_manager import ServiceManager
from fairway.runtime.telemetry import log_as, logger
from fairway.sdk.loading import LoadError, look_for

log = logger("fleet")

LOOK_SECONDS = 2.0


class Actuator(Protocol):
    """Brings about what is wanted of one pool."""

    async def act(self, wish: PoolWish) -> None: ...

    async def close(self, hurried: asyncio.Event) -> None: ...


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class FleetFlags:
    """What is scaled, and how."""

    pool: Annotated[
        list[str] | None,
        Parameter(
            consume_multiple=True,
            help="Pools to look after, each as name or name=slots of one worker (default: short,"
            " medium and long). Each worker serves one pool.",
        ),
    ] = None
    slots: Annotated[
        int | None, Parameter(help="Slots in each pool that was named without a number.")
    ] = None
    part: Annotated[
        str,
        Parameter(
            help="Which part of the workers is this machine's, as 1/3 on the first of three."
        ),
    ] = "1/1"
    url: Annotated[
        list[str] | None,
        Parameter(consume_multiple=True, help="Servers to talk to (default FAIRWAY_URL)."),
    ] = None
    grace: Annotated[
        float, Parameter(help="Seconds that running jobs get to finish when the fleet stops.")
    ] = 25.0
    worker_flag: Annotated[
        list[str] | None,
        Parameter(
            name="--worker-flag",
            consume_multiple=False,
            help="A flag for every worker, such as --worker-flag=--label=gpu; as often as needed.",
        ),
    ] = None
    command: Annotated[
        str | None,
        Parameter(
            help="Run this instead of starting workers here, as in './scale {pool} {wanted}"
            " {may_go}'."
        ),
    ] = None
    deployment: Annotated[
        str | None,
        Parameter(
            help="Scale this Deployment instead, as namespace/name, from inside its cluster; the"
            " pods must be the names of their workers."
        ),
    ] = None


PLAIN = FleetFlags()


def fleet(
    target: Annotated[str, Parameter(show_default=False)] = "",
    *,
    flags: FleetFlags = PLAIN,
    log_level: LevelName | None = None,
    log_format: FormatName | None = None,
) -> int:
    """Keep as many workers as the autoscaler wants. Ctrl-C drains them and stops.

    While autoscaling of a pool is off or a dry run, it keeps the pool's minimum.

    Parameters
    ----------
    target
        The app whose jobs run here, as module:app or file.py:app.
    log_level
        The least that is logged (default info).
    log_format
        Lines for people (text) or for programs (json); default: text on a terminal.
    """
    parent = os.environ.get("FAIRWAY_DIE_WITH_PARENT")  # set by `fairway up`, which may be killed
    if parent is not None and not follow(int(parent), signal.SIGTERM):
        return 0
    outlive_readers()
    log_as(choose(os.environ, log_level, log_format))
    found_urls, api_key = find_platform(os.environ)
    urls = checked_urls(flags.url or found_urls)
    pools = parse_pools(flags.pool, flags.slots)
    part = parse_part(flags.part)
    _check(target, flags, pools)
    remotes = [Remote(url, api_key) for url in urls]
    try:
        return uvloop.run(_main(target, flags, pools, part, remotes))
    except AppCannotLoad as error:  # `fairway up`, say, is not to start this again and again
        sys.stderr.write(f"fairway: {error.message}\n")
        return APP_NOT_LOADED


def _check(target: str, flags: FleetFlags, pools: dict[str, int]) -> None:
    """A slip is better said before anything is started."""
    ways = [name for name in (target, flags.command, flags.deployment) if name]
    if len(ways) != 1:
        raise InvalidRequest(
            "Name one of these: an app whose workers run here (module:app), --command or"
            " --deployment."
        )
    if flags.deployment is not None and len(pools) != 1:
        raise InvalidRequest("--deployment: name the one --pool that it serves.")
    if target:
        try:
            look_for(target)
        except LoadError as error:
            raise InvalidRequest(f"{error}.") from None


def parse_part(text: str) -> Part:
    found = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise InvalidRequest(f"--part {text}: write it as 1/3 on the first of three machines.")
    return Part(int(found[1]), int(found[2]))


async def _main(
    target: str, flags: FleetFlags, pools: dict[str, int], part: Part, remotes: Sequence[Remote]
) -> int:
    stopping, hurried, changed = asyncio.Event(), asyncio.Event(), asyncio.Event()
    manager = ServiceManager.of(os.environ)  # not for the workers that are started here
    stop_on_signals(stopping.set, hurried.set)
    actuators = {
        pool: _actuator(target, flags, part, (pool, slots), changed)
        for pool, slots in pools.items()
    }
    keeper = FleetKeeper(remotes, actuators, stopping, changed)
    manager.ready(f"looks after {', '.join(pools)}")
    try:
        await keeper.run()
    finally:
        manager.stopping("workers finish what they run")
        await asyncio.gather(*(one.close(hurried) for one in actuators.values()))
    return 0


def _actuator(
    target: str,
    flags: FleetFlags,
    part: Part,
    served: tuple[str, int],
    changed: asyncio.Event,
) -> Actuator:
    pool, slots = served
    if flags.command is not None:
        return CommandActuator(pool, flags.command)
    if flags.deployment is not None:
        return DeploymentActuator(in_cluster(os.environ), flags.deployment)
    more = ("--grace", str(flags.grace), *(flags.worker_flag or ()))
    words = worker_words(target, pool, slots, more)
    name = f"{socket.gethostname()}-{pool}-{os.getpid()}"
    return FleetWorkers(FleetTerms(pool, words, flags.grace, part), changed, name)


class FleetKeeper:
    """Looks every few seconds, and at once when a worker ended."""

    def __init__(
        self,
        remotes: Sequence[Remote],
        actuators: dict[str, Actuator],
        stopping: asyncio.Event,
        changed: asyncio.Event,
    ) -> None:
        self._remotes = list(remotes)
        self._actuators = actuators
        self._stopping = stopping
        self._changed = changed
        self._known: dict[str, PoolWish] = {}
        self._modes: dict[str, str] = {}  # by pool, as they were last told of
        self._is_away = False

    async def run(self) -> None:
        while not self._stopping.is_set():
            self._changed.clear()
            self._known |= await asyncio.to_thread(self._wishes)
            for pool, actuator in self._actuators.items():
                if (wish := self._known.get(pool)) is not None and not self._stopping.is_set():
                    await actuator.act(wish)
            await self._rest()

    async def _rest(self) -> None:
        waits = [
            asyncio.ensure_future(one)
            for one in (self._stopping.wait(), self._changed.wait(), pause(LOOK_SECONDS))
        ]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for one in waits:
            one.cancel()

    def _wishes(self) -> dict[str, PoolWish]:
        """By pool; nothing while nobody answers: what was wanted last still is."""
        said = ""
        for remote in self._remotes:
            try:
                found = remote.get("/v1/autoscale")["pools"]
            except FairwayError as error:
                said = error.message
                continue
            self._is_away = False
            self._remotes.sort(key=lambda one: one is not remote)  # whoever answers is asked first
            self._tell_modes(found)
            return {one["pool"]: wish_of(one) for one in found}
        if not self._is_away:
            log.warning("no server says what is wanted; all stays as it is", why=said)
        self._is_away = True
        return {}

    def _tell_modes(self, found: Sequence[dict[str, Any]]) -> None:
        """Who waits for more workers of a pool that nobody scales should know."""
        there = {one["pool"]: one for one in found}
        for pool in self._actuators:
            one = there.get(pool)
            mode = "" if one is None else one["mode"]
            if self._modes.get(pool) == mode:
                continue
            self._modes[pool] = mode
            if one is None:
                log.warning("there is no such pool; nothing is started", pool=pool, pools=[*there])
            elif mode == "on":
                log.info("pool is scaled", pool=pool)
            else:
                helps = f"fairway autoscale set {pool} mode=on"
                kept = one["minimum_workers"]
                log.warning("pool is not scaled", pool=pool, mode=mode, keeps=kept, helps=helps)


def wish_of(view: dict[str, Any]) -> PoolWish:
    """Where nobody decides, or only for practice, the pool's minimum is kept and nobody goes."""
    if view["mode"] == "on":
        return PoolWish(view["wanted_workers"], view["workers"], frozenset(view["may_go"]))
    return PoolWish(view["minimum_workers"], view["workers"], frozenset())
