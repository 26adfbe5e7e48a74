"""Assertions about what was enqueued. Arguments match in part; a miss shows what came closest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from fairway.sdk.handler.codec import encode_value
from fairway.sdk.job import Job
from fairway.sdk.testing.modes import open_mode
from fairway.sdk.testing.record import Enqueued

MISSES_SHOWN = 3
_MISSING = object()


def all_enqueued(job: Job[..., Any] | None = None) -> list[Enqueued]:
    """Everything enqueued under the open mode, oldest first."""
    return [one for one in open_mode().enqueued if job is None or one.type == job.name]


def assert_enqueued(job: Job[..., Any], args: Mapping[str, Any] | None = None) -> Enqueued:
    """The newest job of this type with (at least) these arguments."""
    wanted = _as_json(args)
    candidates = all_enqueued(job)
    found = [one for one in candidates if not _differences(one, wanted)]
    if not found:
        raise AssertionError(_misses(job, wanted, candidates))
    return found[-1]


def refute_enqueued(job: Job[..., Any], args: Mapping[str, Any] | None = None) -> None:
    """No job of this type with (at least) these arguments."""
    wanted = _as_json(args)
    found = [one for one in all_enqueued(job) if not _differences(one, wanted)]
    if found:
        raise AssertionError(
            f"{job.name} was enqueued {len(found)} time(s), the last with {found[-1].args}"
        )


def _as_json(args: Mapping[str, Any] | None) -> dict[str, Any]:
    """Expected values as they look after the codec, so that a Struct equals its JSON."""
    decoded: dict[str, Any] = msgspec.json.decode(encode_value(dict(args or {})))
    return decoded


def _differences(one: Enqueued, wanted: dict[str, Any]) -> dict[str, Any]:
    """What differs, by argument, with the value that is there."""
    had = one.args
    values = {name: had.get(name, _MISSING) for name in wanted}
    return {name: value for name, value in values.items() if value != wanted[name]}


def _misses(job: Job[..., Any], wanted: dict[str, Any], candidates: list[Enqueued]) -> str:
    asked = f"no {job.name} was enqueued" + (f" with {wanted}" if wanted else "")
    if not candidates:
        others = Counter(one.type for one in all_enqueued())
        seen = ", ".join(f"{name} × {count}" for name, count in others.items()) or "nothing"
        return f"{asked}; enqueued: {seen}"
    nearest = sorted(candidates, key=lambda one: len(_differences(one, wanted)))[:MISSES_SHOWN]
    return "\n  ".join([f"{asked}; nearest of {len(candidates)}:", *_lines(nearest, wanted)])


def _lines(nearest: list[Enqueued], wanted: dict[str, Any]) -> list[str]:
    return [
        ", ".join(_told(name, had, wanted) for name, had in _differences(one, wanted).items())
        for one in nearest
    ]


def _told(name: str, had: Any, wanted: dict[str, Any]) -> str:
    there = "was not given" if had is _MISSING else f"was {had!r}"
    return f"`{name}` {there}, not {wanted[name]!r}"
