"""Settings of PostgreSQL: the ones we write for the embedded server, and a judgement of any server.

Pure: facts in, settings or findings out. It knows no connection and no file. What the promise
"202 means on disk" rests on is an error when missing; what merely costs speed is a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fairway.core.server_processes import connections_needed
from fairway.store.connections.server_version import (
    VERSION_MIN,
    VERSION_WITH_SHORT_RANGES,
)
from fairway.store.postgres.setting_rules import GB, MB, RULES, Rule, shown

CLOCK_OFFSET_SECONDS_MAX = 1.0
CONNECTIONS_USUAL = 100
CONNECTIONS_RESERVED = 3  # for a superuser, as PostgreSQL has it by default


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    level: Literal["error", "warning"]
    what: str
    remedy: str


def embedded_settings(memory_bytes: int, cores: int, processes: int = 1) -> dict[str, str]:
    """The embedded server's configuration for a machine that it shares with everything else.

    With room for the connections of so many server processes.
    """
    connections = max(CONNECTIONS_USUAL, connections_needed(processes) + CONNECTIONS_RESERVED)
    room = {"max_connections": str(connections)}
    return _durability() | room | _memory(memory_bytes, cores) | _upkeep() | _manners()


def inspect(
    facts: Mapping[str, str],
    server_version_num: int,
    clock_offset_seconds: float = 0.0,
    processes: int = 1,
) -> list[Finding]:
    """Judge a server's settings, errors first. A setting that it does not have is not judged."""
    found = [
        *_inspect_version(server_version_num),
        *(_finding(rule, facts[rule.setting]) for rule in RULES if _breaks(rule, facts)),
        *inspect_connections(facts, processes),
        *_inspect_clock(clock_offset_seconds),
    ]
    return sorted(found, key=lambda finding: finding.level)


def _durability() -> dict[str, str]:
    return {
        "fsync": "on",
        "full_page_writes": "on",
        "synchronous_commit": "on",
        "wal_compression": "pglz",  # the bundled build has neither lz4 nor zstd
        "wal_buffers": "16MB",
        # Rare checkpoints: each one makes the next write of every page a full page in the log.
        "checkpoint_timeout": "15min",
        "max_wal_size": "4GB",
        "min_wal_size": "512MB",
    }


def _memory(memory_bytes: int, cores: int) -> dict[str, str]:
    buffers_mb = min(max(memory_bytes // 8, 128 * MB), GB) // MB
    return {
        "shared_buffers": f"{buffers_mb}MB",
        "effective_cache_size": f"{max(memory_bytes // 2 // MB, buffers_mb)}MB",
        "maintenance_work_mem": f"{min(max(memory_bytes // 64 // MB, 32), 256)}MB",
        "max_parallel_workers": str(cores),
        # Dashboards may use spare cores; on a small machine there are none.
        "max_parallel_workers_per_gather": str(min(cores // 4, 2)),
        "io_method": "worker",  # the bundled build has no io_uring
        "random_page_cost": "1.1",
        "jit": "off",  # our statements are short: compiling them costs more than running them
        # Plans here follow from the shape of statements; large samples of a table that changes all
        # the time would be taken again and again.
        "default_statistics_target": "10",
    }


def _upkeep() -> dict[str, str]:
    """A queue's rows die young, so vacuum comes often and hardly rests."""
    return {
        "autovacuum": "on",
        "autovacuum_naptime": "5s",
        "autovacuum_vacuum_cost_delay": "1ms",
    }


def _manners() -> dict[str, str]:
    return {
        # Limits on statements belong to each connection; a forgotten transaction harms everyone.
        "idle_in_transaction_session_timeout": "10s",
        "logging_collector": "off",
        "log_checkpoints": "off",
        "log_line_prefix": "%m [%p] ",
        "log_lock_waits": "on",
        "log_min_duration_statement": "1000ms",
        "log_timezone": "UTC",
        "timezone": "UTC",
        "track_io_timing": "off",
    }


def _breaks(rule: Rule, facts: Mapping[str, str]) -> bool:
    return rule.setting in facts and not rule.holds(facts[rule.setting])


def _finding(rule: Rule, value: str) -> Finding:
    what = f"{rule.setting} is {shown(rule, value)}: {rule.why}"
    return Finding(level=rule.level, what=what, remedy=rule.remedy)


def _inspect_version(server_version_num: int) -> list[Finding]:
    major = server_version_num // 10_000
    what = f"PostgreSQL is version {major}"
    if major < VERSION_MIN:
        return [Finding(level="error", what=what, remedy=f"upgrade to {VERSION_MIN} or newer")]
    if major < VERSION_WITH_SHORT_RANGES:
        what += ", in which the end of a job takes the longer the more jobs its shard has had today"
        remedy = f"upgrade to {VERSION_WITH_SHORT_RANGES} before there are a million a day"
        return [Finding(level="warning", what=what, remedy=remedy)]
    return []


def inspect_connections(facts: Mapping[str, str], processes: int) -> list[Finding]:
    """Of one server with so many processes; a deploy that overlaps needs as many again."""
    needed = connections_needed(processes)
    reserved = ("superuser_reserved_connections", "reserved_connections")
    usable = int(facts.get("max_connections", 10_000)) - sum(int(facts.get(n, 0)) for n in reserved)
    if usable >= needed:
        return []
    server = "one server" if processes == 1 else f"one server with {processes} processes"
    what = f"only {usable} connections are open to roles like ours: {server} needs {needed}"
    remedy = f"raise max_connections to {max(100, 2 * needed)}"
    if processes > 1:
        remedy += ", or run fewer processes (FAIRWAY_SERVER_PROCESSES)"
    return [Finding(level="error", what=what, remedy=remedy)]


def _inspect_clock(offset_seconds: float) -> list[Finding]:
    if abs(offset_seconds) <= CLOCK_OFFSET_SECONDS_MAX:
        return []
    side = "ahead of" if offset_seconds > 0 else "behind"
    what = f"the database's clock is {abs(offset_seconds):.1f} s {side} this machine's"
    return [Finding(level="warning", what=what, remedy="run a time service (NTP) on both")]
