"""The settings we write, and what we say about those of others."""

from __future__ import annotations

import pytest

from fairway.store.postgres.inspection import plain
from fairway.store.postgres.setting_rules import GB, MB
from fairway.store.postgres.tuning import embedded_settings, inspect_connections


@pytest.mark.parametrize(
    ("memory_bytes", "expected"), [(512 * MB, "128MB"), (4 * GB, "512MB"), (64 * GB, "1024MB")]
)
def test_shared_buffers_follow_the_memory_within_bounds(memory_bytes: int, expected: str) -> None:
    assert embedded_settings(memory_bytes, 2)["shared_buffers"] == expected


def test_the_embedded_server_never_trades_durability() -> None:
    settings = embedded_settings(GB, 1)
    for name in ("fsync", "full_page_writes", "synchronous_commit", "autovacuum"):
        assert settings[name] == "on"


def test_small_machines_run_no_parallel_queries() -> None:
    assert embedded_settings(GB, 2)["max_parallel_workers_per_gather"] == "0"
    assert embedded_settings(GB, 16)["max_parallel_workers_per_gather"] == "2"


@pytest.mark.parametrize(
    ("setting", "unit", "expected"),
    [
        ("16384", "8kB", str(128 * MB)),
        ("15", "min", "900000"),
        ("-1", "8kB", "-1"),
        ("on", "", "on"),
    ],
)
def test_units_are_resolved(setting: str, unit: str, expected: str) -> None:
    assert plain(setting, unit) == expected


@pytest.mark.parametrize("processes", [1, 8, 9, 64])
def test_the_embedded_server_has_room_for_all_processes(processes: int) -> None:
    connections = embedded_settings(GB, 2, processes)["max_connections"]
    assert int(connections) == 100 or processes > 8
    facts = {"max_connections": connections, "superuser_reserved_connections": "3"}
    assert inspect_connections(facts, processes) == []
