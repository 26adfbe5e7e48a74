"""What a worker is told when it starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from msgspec import Raw

from fairway.core.run.process_limits import RunLimits
from fairway.wire.exchange import Hello, TypeTerms

CEILING = RunLimits(processes=512)  # of one job, unless the operator says otherwise


def _tell_nobody() -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    target: str  # module:app
    name: str
    urls: list[str]
    api_key: str
    slots: dict[str, int]  # pool → slots
    grace_seconds: float = 25.0
    build: str = ""
    ceiling: RunLimits = CEILING  # for jobs in a process of their own
    cgroup: str | None = None  # below which groups may be made
    journal: Path | None = None  # the folder; None for no journal
    labels: list[str] = field(default_factory=list)
    warm_keys: list[str] = field(default_factory=list)  # what it keeps ready: images, models
    follows_owners: bool = True  # to addresses that a server named; else calls are passed on
    owns_process: bool = False  # no other children: what is not ours is a dead runner's orphan
    on_ready: Callable[[], None] = _tell_nobody  # when a server has taken its hello

    def hello(self, types: Sequence[TypeTerms | Raw], limits: dict[str, str]) -> Hello:
        """Who this worker is: with these job types, whose limits are held so."""
        said = cast(list[TypeTerms], types)  # what is encoded already goes out as it is
        return Hello(
            types=said,
            slots=self.slots,
            build=self.build,
            limits=limits,
            labels=self.labels,
            warm_keys=self.warm_keys,
        )
