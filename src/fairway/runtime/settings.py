"""Every setting and its default, read once at start: flag, then `FAIRWAY_*`, then default.

One frozen value for the whole program. `check()` looks at all of it and answers what is wrong, so
that a person mends everything in one go. Unknown `FAIRWAY_*` names are errors with a hint.
"""

from __future__ import annotations

import dataclasses
import difflib
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from fairway.core.errors import InvalidRequest
from fairway.core.pools import BY_NAME, Pool

PREFIX = "FAIRWAY_"
WORDS_OF_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

#: Names that belong to other programs of the house (SDK, tests); not ours to judge.
FOREIGN = frozenset(
    {
        "URL",
        "API_KEY",
        "WORKER_KEY",
        "OPERATOR_KEY",
        "PROFILE",
        "BUILD",
        "BENCH_DELAYS",
        "BENCH_RUNS",
        "DIE_WITH_PARENT",
        "CGROUP",
        "TEST_CITUS_URL",
        "TEST_DATABASE_URL",
        "PROPERTY_EXAMPLES",
        "HOSTILE_SECONDS",
    }
)


#: Every other number must be above zero.
NOT_NEGATIVE = ("adoption_seconds", "lazy_running_ms", "inline_bytes_max", "drain_seconds")
OF_OTHER_BOUNDS = ("port", "shard_count", "term_seconds")


#: Kinds whose empty text, as files of containers have it, means not set: never the folder "".
TEXTS = (str, str | None, Path, Path | None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    data_dir: Path = Path(".fairway")
    database_url: str | None = None  # replaces the embedded PostgreSQL
    owner_database_url: str | None = None  # as who owns the tables, if database_url does not
    row_security: bool = True  # the database lets a tenant's requests see its own rows only
    host: str = "127.0.0.1"
    port: int = 8700
    advertised_url: str | None = None  # how other servers reach this one; made from host and port
    shard_count: int = 1  # written once, when the database is founded
    retention_days: int = 7
    audit_days: int = 365  # how long it is known who changed what
    storage_url: str | None = None  # object storage; a folder in data_dir unless told otherwise
    checkpoint_bytes_max: int = 64 << 20
    body_bytes_max: int = 16 << 20
    body_room_bytes_max: int = 512 << 20  # of all large bodies under way, half of it for workers
    payload_bytes_max: int = 8 << 20
    inline_bytes_max: int = 64 << 10  # larger payloads and results go to object storage
    upload_bytes_max: int = 1 << 30
    store_wait_seconds: float = 3.0  # somebody who asks waits this long for the store, then 503
    results_waiting_bytes_max: int = 256 << 20  # large results on their way to object storage
    uploads_in_flight: int = 8  # of one tenant, at a time
    unclaimed_bytes_max: int = 10 << 30  # of one tenant: uploaded, and no job has come for it
    uploaded_bytes_max: int = 100 << 30  # of one tenant: all uploads that are kept
    uploads_kept_max: int = 20_000  # of one tenant: how many these are
    term_seconds: float = 3.0  # an owner silent for this long has lost its shards
    adoption_seconds: float = 1.0  # a new owner waits this long for workers to say what they run
    lease_seconds: dict[str, float] = field(default_factory=dict)  # pool → seconds, over its own
    timeout_grace_seconds: float = 30.0  # past a job's time limit its lease is taken back
    lazy_running_ms: int = 100  # a short job that outlives this is written as running
    window_jobs: int = 150_000  # jobs held in memory, whatever the depth
    window_bytes: int = 64 << 20  # of their payloads
    submit_waiting_max: int = 50_000  # accepted into the group commit and not on disk yet
    promote_per_second: int = 3000  # due jobs that move to the backlog, per shard
    promote_tenant_per_second: int = 1500  # and of one tenant
    schedule_seconds_min: float = 10.0  # ticks of a recurring schedule are at least so far apart
    schedules_per_tenant: int = 1000
    connections_max: int = 10_000  # open at once; never more than half of the files we may open
    connections_per_address: int = 1000  # shared workers and operators apart
    head_seconds: float = 10.0  # for a request line and all headers to arrive
    idle_seconds: float = 30.0  # a connection without a request is kept this long
    unread_bytes_max: int = 256 << 20  # of all replies that wait in memory to be read
    streams_max: int = 2000  # event streams that a server keeps open
    streams_per_tenant: int = 500
    waits_per_tenant: int = 500  # requests with `Prefer: wait`
    drain_seconds: float = 25.0
    metrics_name_types: bool = False  # whether /metrics tells job types to who has no key
    log_level: str = "info"  # read by `log_options.py`, and by workers
    log_format: str | None = None  # text or json; text on a terminal unless told otherwise
    postgres_bin: Path | None = None  # a folder with PostgreSQL's programs, instead of the wheel's

    def lease_seconds_of(self, pool: Pool) -> float:
        return self.lease_seconds.get(pool.name, pool.lease_seconds)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host  # an address of IPv6
        return self.advertised_url or f"http://{host}:{self.port}"

    def check(self) -> list[str]:
        """What is wrong, each as a sentence that says what to do."""
        found = [
            f"{PREFIX}LEASE_SECONDS names the pool {name!r}; there are {', '.join(BY_NAME)}."
            for name in self.lease_seconds
            if name not in BY_NAME
        ]
        found += [
            f"{PREFIX}{name.upper()} must be above zero."
            for name, kind in get_type_hints(Settings).items()
            if kind in (int, float)
            and name not in NOT_NEGATIVE + OF_OTHER_BOUNDS
            and getattr(self, name) <= 0
        ]
        found += [
            f"{PREFIX}{name.upper()} must not be negative."
            for name in NOT_NEGATIVE
            if getattr(self, name) < 0
        ]
        found += [
            f"{PREFIX}LEASE_SECONDS of {name} must be above zero."
            for name, seconds in self.lease_seconds.items()
            if seconds <= 0
        ]
        if self.owner_database_url is not None and self.database_url is None:
            found.append(
                f"{PREFIX}OWNER_DATABASE_URL is set and {PREFIX}DATABASE_URL is not: the embedded"
                " PostgreSQL has an owner of its own. Unset it, or set both."
            )
        if not 1 <= self.port <= 65535:
            found.append(f"{PREFIX}PORT must be from 1 to 65535, not {self.port}.")
        if not 1 <= self.shard_count <= 4096:
            found.append(f"{PREFIX}SHARD_COUNT must be from 1 to 4096.")
        if self.term_seconds < 0.5:
            found.append(f"{PREFIX}TERM_SECONDS under 0.5 makes owners change for no reason.")
        if self.host not in ("127.0.0.1", "localhost", "::1") and self.advertised_url is None:
            found.append(
                f"{PREFIX}HOST is {self.host}: set {PREFIX}ADVERTISED_URL to the address"
                " under which other servers reach this one."
            )
        return found


def load(environment: Mapping[str, str], **flags: Any) -> Settings:
    """Settings from flags (those that are not None) over the environment over the defaults."""
    hints = get_type_hints(Settings)
    values = {
        name: _parse(f"{PREFIX}{name.upper()}", text, hints[name])
        for name, text in _ours(environment, hints).items()
    }
    given = {name: value for name, value in flags.items() if value is not None}
    if "database_url" in given:  # another database than the environment's, with another owner
        values.pop("owner_database_url", None)
    return Settings(**values | given)


def _ours(environment: Mapping[str, str], hints: dict[str, Any]) -> dict[str, str]:
    found = {}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX) or variable.removeprefix(PREFIX) in FOREIGN:
            continue
        name = variable.removeprefix(PREFIX).lower()
        if name not in hints:
            near = difflib.get_close_matches(name, hints, n=1)
            hint = f" Did you mean {PREFIX}{near[0].upper()}?" if near else ""
            raise InvalidRequest(f"There is no setting {variable}.{hint}", code="UNKNOWN_SETTING")
        if text or hints[name] not in TEXTS:
            found[name] = text
    return found


def _parse(variable: str, text: str, kind: Any) -> Any:
    if get_origin(kind) in (Union, types.UnionType):
        kind = next(option for option in get_args(kind) if option is not types.NoneType)
    try:
        if get_origin(kind) is dict:
            pairs = (pair.split("=") for pair in text.split(","))
            return {key: _number(value) for key, value in pairs}
        if kind is bool:  # Python's own takes every word but none for true
            return _truth(text)
        return _number(text) if kind is float else kind(text)
    except ValueError:
        name = f"no {getattr(kind, '__name__', 'name=number,…')}"
        what = "neither true nor false" if kind is bool else name
        raise InvalidRequest(
            f"{variable} is {text!r}, which is {what}.", code="BAD_SETTING"
        ) from None


def _number(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(text)
    return number


def _truth(text: str) -> bool:
    if text.lower() not in WORDS_OF_TRUTH:
        raise ValueError(text)
    return WORDS_OF_TRUTH[text.lower()]


def replaced(settings: Settings, **changes: Any) -> Settings:
    return dataclasses.replace(settings, **changes)
