"""Workers as people see them, and those that several servers hear put together.

A worker may have a session with every owner. Which servers there are is none of its business, nor
of whoever asks for the list: it shows each life of a worker once. Asks nobody: `relay.py` does.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fairway.api.peers import AskedWorkers
from fairway.services.platform import Platform
from fairway.services.workers.worker_list import WorkerSight
from fairway.wire.operators.operator import WorkerView


def workers_here(platform: Platform, asked: AskedWorkers) -> list[WorkerView]:
    """Those that this server hears."""
    known = platform.worker_list
    if asked.name is None:
        sights = known.workers()
    else:
        sights = known.ask_to_drain(asked.name) if asked.drain else known.named(asked.name)
    return [_view(platform, sight) for sight in sights]


def merged(views: Iterable[WorkerView]) -> list[WorkerView]:
    """Each life once, by name, and when any of the servers heard it.

    It tells each of them all of its slots and all that it runs, for whichever it is.
    """
    found: dict[tuple[str, str], WorkerView] = {}
    for one in views:
        life = one.name, one.life
        found[life] = one if life not in found else _joined(found[life], one)
    return [found[life] for life in sorted(found)]


def _joined(one: WorkerView, other: WorkerView) -> WorkerView:
    newest = min(one, other, key=lambda view: view.silent_seconds)
    pools = one.running.keys() | other.running.keys()
    return msgspec.structs.replace(
        newest,
        slots={
            pool: max(one.slots.get(pool, 0), other.slots.get(pool, 0))
            for pool in one.slots | other.slots
        },
        running={
            pool: max(one.running.get(pool, 0), other.running.get(pool, 0))
            for pool in sorted(pools)
        },
        draining=one.draining or other.draining,
    )


def _view(platform: Platform, sight: WorkerSight) -> WorkerView:
    whose = None if sight.tenant is None else platform.directory.name_of(sight.tenant)
    rounded = {"tenant": whose, "silent_seconds": round(sight.silent_seconds, 3)}
    if sight.closed_seconds is not None:
        rounded["closed_seconds"] = round(sight.closed_seconds, 3)
    return WorkerView(**sight._asdict() | rounded)
