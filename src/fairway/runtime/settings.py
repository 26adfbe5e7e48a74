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
from ipaddress import ip_network
from math import isfinite
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from fairway.core.billing.money import NO_CURRENCY, is_currency
from fairway.core.errors import InvalidRequest
from fairway.core.pools import BY_NAME, Pool
from fairway.core.regions.addresses import wrong_addresses
from fairway.core.regions.region_map import region_map, wrong_regions
from fairway.core.server_processes import PROCESSES_MAX
from fairway.core.webhooks.addresses import parsed_networks

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
        "LISTEN_FD",
        "READY_FD",
        "READY_BEFORE",
        "PROCESS_GROUP",
        "CGROUP",
        "TEST_CITUS_URL",
        "TEST_DATABASE_URL",
        "PROPERTY_EXAMPLES",
        "HOSTILE_SECONDS",
    }
)


#: Every other number must be above zero.
NOT_NEGATIVE = (
    "adoption_seconds",
    "lazy_running_ms",
    "inline_bytes_max",
    "drain_seconds",
    "otel_trace_ratio",
)
OF_OTHER_BOUNDS = ("port", "shard_count", "term_seconds", "server_processes", "process_port")


#: Kinds whose empty text, as files of containers have it, means not set: never the folder "".
TEXTS = (str, str | None, Path, Path | None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What stands below each is its line in docs/SETTINGS.md."""

    data_dir: Path = Path(".fairway")
    """All state of `fairway up`: PostgreSQL, keys (`client.json`), the outcome journal. What it
    makes is open to its owner only (0700; as root, PostgreSQL's own user may pass through: 0710). A
    folder that was there before keeps its mode."""
    database_url: str | None = None
    """A PostgreSQL of your own in place of the embedded one: `postgresql://user@host/database`."""
    owner_database_url: str | None = None
    """The same database as the role that owns the tables, for migrations and partitions, where
    `FAIRWAY_DATABASE_URL` is another: see
    [the second wall](OPERATING.md#the-database-as-a-second-wall)."""
    row_security: bool = True
    """The database shows a tenant's requests that tenant's rows only; without the roles for it a
    server does not start."""
    host: str = "127.0.0.1"
    """Where the server listens."""
    port: int = 8700
    """And its port."""
    advertised_url: str | None = None
    """How other servers reach this one; from host and port unless told otherwise."""
    public_url: str | None = None
    """How programs and people reach the platform, where that is not `FAIRWAY_ADVERTISED_URL`: a
    proxy's address, say."""
    server_processes: int = 0
    """Server processes of `fairway server` and `fairway up` behind one port; 0: by cores, one on up
    to 2, then half of them, 8 at most. See [all cores](OPERATING.md#all-cores-of-a-machine)."""
    consolidate_processes: bool = True
    """Of several server processes as few own shards as the work needs, and the others stand by;
    `false`: all have their even part. See [what it costs](SCALE.md#all-cores-of-a-machine)."""
    process_port: int = 0
    """Each of several server processes has an address of its own besides, for other servers and
    workers: this port and those that follow, for firewalls; 0: any that are free."""
    shard_count: int = 64
    """Parts that jobs are divided into, each with one owner; written when the database is founded,
    and made more by `fairway shards split`. As many servers can share the work; on one server many
    cost what one does."""
    store_by_shard: bool = False
    """Every statement names one shard, as a distributed PostgreSQL needs it; on plain PostgreSQL
    one statement carries the rows of many, which is cheaper."""
    region: str = ""
    """The region of this server, one of `FAIRWAY_REGIONS`; empty: there are no regions. See
    [several regions](SCALE.md#several-regions)."""
    regions: str = ""
    """Every region with the addresses of its servers, the same text in all of them:
    `eu=http://a:8700,http://b:8700;us=http://c:8700`. New ones are appended: a region's place is
    its number in job ids. The first is the directory until a failover."""
    region_secret: str = ""
    """By which regions know each other's servers: 16 characters or more, the same everywhere."""
    held_jobs_max: int = 100_000
    """Jobs kept for homes that cannot be reached; of one tenant a fourth. Then 503 `HELD_FULL`."""
    retention_days: int = 7
    """How long jobs that ended are kept; then their partition goes. Unfinished ones live on."""
    event_retention_hours: int = 72
    """How long events are kept at least, in tenants' logs: whole days of them go."""
    deleted_tenant_days: int = 30
    """How long a deleted tenant can be restored, and its name stays taken."""
    audit_days: int = 365
    """How long it is known who changed what."""
    trusted_proxies: str = ""
    """Addresses and networks of proxies, with commas, whose `X-Forwarded-For` is believed: by the
    audit, and where wrong keys are counted. From anybody else the header means nothing."""
    redacted_fields: str = ""
    """Names of fields, with commas, whose values are hidden from operators and from the audit,
    besides password, token, secret, authorization, api_key, card and
    [others](SECURITY.md#what-is-hidden)."""
    usage_days: int = 400
    """How long usage is kept by the hour; statements of months are kept for good."""
    currency: str = NO_CURRENCY
    """What prices and spend caps are in: a code of ISO 4217, such as EUR; it is told with amounts
    of money in events. XXX: none is named."""
    storage_url: str | None = None
    """Object storage for checkpoints, large payloads and results: `s3://bucket/path`, `gs://…`,
    `az://…` or `file:///…`; credentials from the usual variables of each. A folder `objects` in the
    data folder unless told otherwise; but all servers of a database must share one: see
    [object storage](OPERATING.md#object-storage)."""
    checkpoint_bytes_max: int = 64 << 20
    """Of one checkpoint."""
    body_bytes_max: int = 16 << 20
    """Of one request, so of a batch."""
    body_room_bytes_max: int = 512 << 20
    """All bodies of over 64 KB that are under way: half for requests, a fourth for tenants' own
    workers, a fourth for shared workers; see [Memory](OPERATING.md#memory)."""
    payload_bytes_max: int = 8 << 20
    """Of one job in a request."""
    inline_bytes_max: int = 64 << 10
    """Larger payloads and results go to object storage."""
    upload_bytes_max: int = 1 << 30
    """Of one upload."""
    disk_reserve_bytes: int = 512 << 20
    """Room on the disk of the embedded PostgreSQL that is kept for what was accepted: with less,
    new jobs hear 503 `DISK_FULL`, and what is there runs on."""
    store_wait_seconds: float = 0.9
    """Somebody who asks waits this long for PostgreSQL, then hears 503 with `Retry-After`."""
    results_waiting_bytes_max: int = 256 << 20
    """Large results on their way to object storage, in memory; of one tenant a fourth. What finds
    no room stays at its worker, and holds no slot. As much again for small results on their way to
    PostgreSQL: those that come while it is behind stay at their workers, with their slots."""
    uploads_in_flight: int = 8
    """Of one tenant at a time, at each server."""
    unclaimed_bytes_max: int = 10 << 30
    """Of one tenant: uploaded, and no job has come for it."""
    uploaded_bytes_max: int = 100 << 30
    """Of one tenant: all uploads that are kept, a day or two each, whether a job has come for them
    or not."""
    uploads_kept_max: int = 20_000
    """Of one tenant: how many these are; they are counted one by one, every minute that the tenant
    uploads."""
    term_seconds: float = 3.0
    """An owner silent for this long has lost its shards."""
    owns_shards: bool = True
    """`false`: this server accepts, answers and passes on, and decides nothing about what runs.
    When nobody has owned a shard for `FAIRWAY_DEGRADED_AFTER_SECONDS` it stands in: see
    [degraded mode](OPERATING.md#degraded-mode)."""
    degraded_after_seconds: float = 60.0
    """So long a server that does not own waits for one that does, before it stands in."""
    adoption_seconds: float = 1.0
    """So long a new owner waits for workers to say what they run."""
    lease_seconds: dict[str, float] = field(default_factory=dict)
    """A worker silent for this long has lost its leases, per pool."""
    timeout_grace_seconds: float = 30.0
    """So long after a job's time limit (or a tenth of it, if that is more) the server takes its
    lease back."""
    lazy_running_ms: int = 100
    """A short job that runs longer is written down as running."""
    window_jobs: int = 150_000
    """Jobs that an owner holds in memory; the rest waits in the store."""
    window_bytes: int = 64 << 20
    """And bytes of their payloads."""
    submit_waiting_max: int = 50_000
    """Jobs on their way to disk; then 503 `OVERLOADED`."""
    promote_per_second: int = 3000
    """Due jobs that move to the backlog, per server; also when an outage is made up for."""
    promote_tenant_per_second: int = 1500
    """And of one tenant."""
    schedule_seconds_min: float = 10.0
    """Ticks of a recurring schedule are at least so far apart."""
    schedules_per_tenant: int = 1000
    """Recurring schedules of one tenant."""
    webhooks_per_tenant: int = 20
    """Webhooks of one tenant."""
    webhook_call_seconds: float = 15.0
    """For one call of a webhook's receiver, from the first byte to the last."""
    webhook_http: bool = False
    """`true` lets webhooks have addresses of plain http: what is sent can be read on the way."""
    webhook_private_networks: str | None = None
    """Networks beyond the public internet that webhooks may be sent into, such as
    `10.1.0.0/16,fd00:1::/64`: **every tenant can then make this server call whatever listens
    there**. For development and for platforms whose tenants are all your own."""
    connections_max: int = 10_000
    """Open connections; never more than half of the files the process may open (it raises its own
    limit to the hard one, up to 65 536)."""
    connections_per_address: int = 1000
    """From one address (IPv6: one /64), those of shared workers and operators apart. **Behind a
    proxy or a NAT everybody has one address: set it to `FAIRWAY_CONNECTIONS_MAX`** and let the
    proxy count. With several servers keep it above 800 for each server process of a machine: what
    they pass on for tenants comes from its address."""
    head_seconds: float = 10.0
    """For request line and headers, all of them; then 408."""
    idle_seconds: float = 30.0
    """A connection without a request is closed; one that is being answered, held or streamed is not
    idle. A proxy must keep its own for less."""
    unread_bytes_max: int = 256 << 20
    """Replies that wait in memory to be read; when there are more, who has most of them loses its
    largest."""
    streams_max: int = 2000
    """Event streams that a server keeps open, a tenth of them for operators; then 429
    `TOO_MANY_STREAMS`."""
    streams_per_tenant: int = 500
    """And of one tenant."""
    waits_per_tenant: int = 500
    """Requests held by `Prefer: wait`; one more is answered at once, with the job as it is."""
    drain_seconds: float = 25.0
    """What running jobs get to finish when `fairway up` stops."""
    metrics_name_types: bool = False
    """`true` shows metrics by job type to who asks `/metrics` without an operator's key."""
    otel: bool = False
    """`true` sends traces, metrics and logs by OTLP to where `OTEL_EXPORTER_OTLP_ENDPOINT` says,
    from servers and workers; needs `fairway[otel]`. See [TELEMETRY.md](TELEMETRY.md)."""
    otel_trace_ratio: float = 0.01
    """Of jobs that come without a `traceparent`, from 0 to 1: so many begin a trace.
    `OTEL_TRACES_SAMPLER` stands above it."""
    otel_traces_per_second: int = 200
    """No more jobs than that are traced by one server, and a fourth of it of one tenant, whatever
    their callers ask for."""
    log_level: str = "info"
    """The least that is logged, by servers, workers and jobs: debug, info, warning, error."""
    log_format: str | None = None
    """Lines for people, `text`, or for programs, `json`; by whether it is a terminal, else."""
    postgres_bin: Path | None = None
    """A folder with PostgreSQL's programs for the embedded one, instead of the package's."""

    def lease_seconds_of(self, pool: Pool) -> float:
        return self.lease_seconds.get(pool.name, pool.lease_seconds)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host  # an address of IPv6
        return self.advertised_url or f"http://{host}:{self.port}"

    @property
    def programs_url(self) -> str:
        """For those who are no server."""
        return self.public_url or self.url

    @property
    def region_number(self) -> int:
        """In ids of jobs; 0: there are no regions."""
        regions = region_map(self.region, self.regions)
        return 0 if regions is None else regions.number

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
        found += wrong_addresses(advertised_url=self.advertised_url, public_url=self.public_url)
        if not _are_networks(self.trusted_proxies):
            found.append(
                f"{PREFIX}TRUSTED_PROXIES is {self.trusted_proxies!r}: name addresses or networks,"
                " such as 10.0.0.0/8, with commas between."
            )
        if not is_currency(self.currency):
            found.append(f"{PREFIX}CURRENCY is {self.currency!r}: an ISO 4217 code, such as EUR.")
        found += wrong_regions(self.region, self.regions, self.region_secret)
        found += self._wrong_networks() + self._out_of_bounds()
        if self.host not in ("127.0.0.1", "localhost", "::1") and self.advertised_url is None:
            found.append(
                f"{PREFIX}HOST is {self.host}: set {PREFIX}ADVERTISED_URL to the address"
                " under which other servers reach this one."
            )
        return found

    def _out_of_bounds(self) -> list[str]:
        found = []
        if not 1 <= self.port <= 65535:
            found.append(f"{PREFIX}PORT must be from 1 to 65535, not {self.port}.")
        if not 0 <= self.server_processes <= PROCESSES_MAX:
            found.append(f"{PREFIX}SERVER_PROCESSES (--processes) goes from 0 to {PROCESSES_MAX}.")
        if not 0 <= self.process_port <= 65536 - PROCESSES_MAX:
            found.append(f"{PREFIX}PROCESS_PORT must be from 0 to {65536 - PROCESSES_MAX}.")
        if not 1 <= self.shard_count <= 4096:
            found.append(f"{PREFIX}SHARD_COUNT must be from 1 to 4096, not {self.shard_count}.")
        if self.otel_trace_ratio > 1:
            found.append(f"{PREFIX}OTEL_TRACE_RATIO is a part of all: from 0 to 1.")
        if self.term_seconds < 0.5:
            found.append(f"{PREFIX}TERM_SECONDS under 0.5 makes owners change for no reason.")
        return found

    def _wrong_networks(self) -> list[str]:
        try:
            parsed_networks(self.webhook_private_networks or "")
        except ValueError as error:
            return [f"{PREFIX}WEBHOOK_PRIVATE_NETWORKS: {error}. Write 10.1.0.0/16,fd00:1::/64."]
        return []


def _are_networks(text: str) -> bool:
    try:
        for part in filter(None, map(str.strip, text.split(","))):
            ip_network(part, strict=False)
    except ValueError:
        return False
    return True


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


def checked(settings: Settings, *only: str) -> Settings:
    """The same, if nothing in them contradicts anything else; or nothing that begins with these."""
    problems = [one for one in settings.check() if not only or one.startswith(only)]
    if problems:
        raise InvalidRequest("The settings are not right:\n  " + "\n  ".join(problems))
    return settings


def replaced(settings: Settings, **changes: Any) -> Settings:
    return dataclasses.replace(settings, **changes)
