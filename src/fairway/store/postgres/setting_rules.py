"""What single settings of a PostgreSQL server must be, as a table. `tuning.py` applies it.

An error breaks the promise that 202 means on disk, or stops Fairway from working; a warning costs
speed. Memory is in bytes and time in milliseconds. It holds no rule that joins two settings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

MB = 1024**2
GB = 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    setting: str
    level: Literal["error", "warning"]
    holds: Callable[[str], bool]
    why: str
    remedy: str


def shown(rule: Rule, value: str) -> str:
    """A value in the unit that people use for it."""
    if rule.setting in MEMORY:
        return f"{float(value) / MB:g} MB"
    return f"{float(value) / 1000:g} s" if "timeout" in rule.setting else value


MEMORY = {"shared_buffers", "max_wal_size"}


def _is(*allowed: str) -> Callable[[str], bool]:
    return lambda value: value in allowed


def _at_least(least: int) -> Callable[[str], bool]:
    return lambda value: float(value) >= least


def _unlimited_or_at_least(least: int) -> Callable[[str], bool]:
    return lambda value: float(value) == 0 or float(value) >= least


def _error(setting: str, holds: Callable[[str], bool], why: str, remedy: str) -> Rule:
    return Rule(setting=setting, level="error", holds=holds, why=why, remedy=remedy)


def _warning(setting: str, holds: Callable[[str], bool], why: str, remedy: str) -> Rule:
    return Rule(setting=setting, level="warning", holds=holds, why=why, remedy=remedy)


_LOSES = "a crash loses jobs that were answered with 202"
_GROWS = "dead rows pile up and every statement slows down"
_READ_ONLY = "Fairway must write"

RULES: tuple[Rule, ...] = (
    _error("fsync", _is("on"), _LOSES, "set fsync = on"),
    _error("full_page_writes", _is("on"), _LOSES, "set full_page_writes = on"),
    _error(
        "synchronous_commit",
        _is("on", "remote_apply", "remote_write", "local"),
        _LOSES,
        "set synchronous_commit = on, also for the role and the database",
    ),
    _error("autovacuum", _is("on"), _GROWS, "set autovacuum = on"),
    _error("track_counts", _is("on"), _GROWS, "set track_counts = on: autovacuum needs it"),
    _error("in_hot_standby", _is("off"), _READ_ONLY, "connect to the primary, not to a standby"),
    _error(
        "default_transaction_read_only",
        _is("off"),
        _READ_ONLY,
        "set default_transaction_read_only = off for the role",
    ),
    _error(
        "server_encoding",
        _is("UTF8"),
        "payloads are Unicode",
        "create the database with ENCODING 'UTF8'",
    ),
    _warning(
        "default_transaction_isolation",
        _is("read committed"),
        "stricter levels make concurrent batches fail and retry",
        "set default_transaction_isolation = 'read committed' for the role",
    ),
    _warning(
        "shared_buffers",
        _at_least(128 * MB),
        "hot pages do not stay in memory",
        "set shared_buffers to an eighth of the memory or more",
    ),
    _warning(
        "max_wal_size",
        _at_least(2 * GB),
        "checkpoints come often under load and slow it down",
        "set max_wal_size = 4GB or more",
    ),
    _warning(
        "checkpoint_timeout",
        _at_least(300_000),
        "checkpoints come often and slow the load down",
        "set checkpoint_timeout = 15min",
    ),
    _warning(
        "idle_in_transaction_session_timeout",
        lambda value: float(value) > 0,
        "a client that hangs inside a transaction holds vacuum back for everyone",
        "set idle_in_transaction_session_timeout = 10s",
    ),
    _warning(
        "statement_timeout",
        _unlimited_or_at_least(5_000),
        "migrations take longer",
        "leave statement_timeout to Fairway's connections: set it to 0 for the role",
    ),
    _warning(
        "transaction_timeout",
        _unlimited_or_at_least(5_000),
        "migrations take longer",
        "leave transaction_timeout to Fairway's connections: set it to 0 for the role",
    ),
)
