"""A scenario: who sends what, on which workers, what happens on the way, what must hold. One file.

Everything a scenario can say is a field here; a word that is not is refused with its place. Times
are in seconds from the start; `faster` shrinks them all.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from fairway import FairwayError


class Kind(Struct, forbid_unknown_fields=True, frozen=True):
    """One kind of job in a mix; `share` is by weight among its group's."""

    type: str
    pool: str
    seconds: float
    share: float = 1.0


class Group(Struct, forbid_unknown_fields=True, frozen=True):
    """Tenants alike. The first sends `skew` times as much as the last."""

    name: str
    jobs: list[Kind]
    per_second: float = 0.0  # of the whole group
    count: int = 1
    skew: float = 1.0
    terms: dict[str, Any] = {}  # of each tenant: tier, weight, limits, as in POST /v1/tenants


class Happening(Struct, forbid_unknown_fields=True, frozen=True):
    """Something done to the platform at a moment."""

    at: float
    what: Literal["kill_worker", "start_worker", "break", "mend", "burst"]
    dependency: str = "payments"
    group: str = ""  # of a burst
    jobs: int = 0
    scheduled: bool = False  # handed in beforehand and due at that moment, where that is possible


class Window(Struct, forbid_unknown_fields=True, frozen=True):
    """A stretch of the run with figures of its own, by when jobs were meant to be sent."""

    name: str
    start: float
    end: float


class Expectation(Struct, forbid_unknown_fields=True, frozen=True):
    """A figure and its bounds; with `against`, the bounds are on their ratio.

    `says` is what the figure is, in words for the page.
    """

    figure: str
    says: str = ""
    against: str = ""
    most: float | None = None
    least: float | None = None


class Fleet(Struct, forbid_unknown_fields=True, frozen=True):
    count: int
    slots: dict[str, int]


class Scenario(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    name: str
    title: str
    question: str
    scaled: str = ""  # what was made smaller, and by how much
    seconds: float
    drain_seconds: float = 120.0
    settings: dict[str, str] = {}  # of the platform, by their FAIRWAY_… names
    workers: Fleet
    tenants: list[Group]
    happenings: list[Happening] = []
    windows: list[Window] = []
    expect: list[Expectation] = []


def load(name_or_path: str) -> Scenario:
    """One that comes with the lab, by name, or a file of your own."""
    text = _read(name_or_path)
    try:
        return msgspec.convert(tomllib.loads(text), Scenario)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise FairwayError(f"The scenario {name_or_path} is not right: {error}") from None


def _read(name_or_path: str) -> str:
    own = Path(name_or_path)
    if own.suffix == ".toml":
        if not own.is_file():
            raise FairwayError(f"There is no file {own}.")
        return own.read_text("utf-8")
    if name_or_path not in names():
        raise FairwayError(f"No scenario {name_or_path!r}; there are {', '.join(names())}.")
    return (_folder() / f"{name_or_path}.toml").read_text("utf-8")


def names() -> list[str]:
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in _folder().iterdir()
        if entry.name.endswith(".toml")
    )


def _folder() -> resources.abc.Traversable:
    return resources.files("fairway.lab") / "scenarios"


def faster(scenario: Scenario, speed: float) -> Scenario:
    """The same in less time: shorter jobs, higher rates, the same shape."""
    if speed == 1:
        return scenario
    replace = msgspec.structs.replace
    groups = [
        replace(
            group,
            per_second=group.per_second * speed,
            jobs=[replace(kind, seconds=kind.seconds / speed) for kind in group.jobs],
        )
        for group in scenario.tenants
    ]
    windows = [replace(w, start=w.start / speed, end=w.end / speed) for w in scenario.windows]
    happenings = [replace(one, at=one.at / speed) for one in scenario.happenings]
    return replace(
        scenario,
        seconds=scenario.seconds / speed,
        tenants=groups,
        windows=windows,
        happenings=happenings,
    )
