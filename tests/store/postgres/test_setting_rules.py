"""What a PostgreSQL must be set to: each weak setting is found alone, in words for people."""

from __future__ import annotations

import pytest

from fairway.store.postgres.setting_rules import GB, MB
from fairway.store.postgres.tuning import inspect

GOOD = {
    "autovacuum": "on",
    "checkpoint_timeout": "900000",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "fsync": "on",
    "full_page_writes": "on",
    "idle_in_transaction_session_timeout": "10000",
    "in_hot_standby": "off",
    "max_connections": "100",
    "max_wal_size": str(4 * GB),
    "server_encoding": "UTF8",
    "shared_buffers": str(GB),
    "statement_timeout": "0",
    "superuser_reserved_connections": "3",
    "synchronous_commit": "on",
    "track_counts": "on",
    "transaction_timeout": "0",
}


PG_18 = 180004


def levels(changes: dict[str, str], version: int = PG_18, offset_seconds: float = 0) -> list[str]:
    return [finding.level for finding in inspect(GOOD | changes, version, offset_seconds)]


def test_a_good_server_has_no_findings() -> None:
    assert inspect(GOOD, PG_18) == []


@pytest.mark.parametrize(
    "setting",
    ["fsync", "full_page_writes", "synchronous_commit", "autovacuum", "track_counts"],
)
def test_what_the_promise_rests_on_must_be_on(setting: str) -> None:
    (finding,) = inspect(GOOD | {setting: "off"}, PG_18)
    assert finding.level == "error"
    assert finding.what.startswith(f"{setting} is off: ")
    assert finding.remedy.startswith(f"set {setting} = on")


@pytest.mark.parametrize("stronger", ["remote_apply", "remote_write"])
def test_waiting_for_a_standby_too_is_welcome(stronger: str) -> None:
    assert levels({"synchronous_commit": stronger}) == []


@pytest.mark.parametrize(
    ("version", "expected"),
    [(150010, ["error"]), (160014, ["warning"]), (170010, ["warning"]), (180000, [])],
)
def test_version_16_is_the_oldest_and_18_the_one_to_have(version: int, expected: list[str]) -> None:
    assert levels({}, version) == expected


WEAK = [
    ({"max_connections": "20"}, "error"),
    ({"in_hot_standby": "on"}, "error"),
    ({"server_encoding": "SQL_ASCII"}, "error"),
    ({"shared_buffers": str(16 * MB)}, "warning"),
    ({"max_wal_size": str(GB)}, "warning"),
    ({"checkpoint_timeout": "30000"}, "warning"),
    ({"idle_in_transaction_session_timeout": "0"}, "warning"),
    ({"statement_timeout": "1000"}, "warning"),
    ({"default_transaction_isolation": "serializable"}, "warning"),
]


@pytest.mark.parametrize(("change", "level"), WEAK)
def test_each_weak_setting_is_found_alone(change: dict[str, str], level: str) -> None:
    assert levels(change) == [level]


def test_values_are_shown_as_people_write_them() -> None:
    (buffers,) = inspect(GOOD | {"shared_buffers": str(16 * MB)}, PG_18)
    (timeout,) = inspect(GOOD | {"checkpoint_timeout": "30000"}, PG_18)
    assert buffers.what.startswith("shared_buffers is 16 MB: ")
    assert timeout.what.startswith("checkpoint_timeout is 30 s: ")


def test_settings_that_a_server_lacks_are_not_judged() -> None:
    without = {name: value for name, value in GOOD.items() if name != "transaction_timeout"}
    assert inspect(without, 180000) == []


def test_errors_come_first() -> None:
    assert levels({"max_wal_size": str(GB), "fsync": "off"}) == ["error", "warning"]


@pytest.mark.parametrize(
    ("offset_seconds", "side"), [(2.5, "2.5 s ahead of"), (-3, "3.0 s behind")]
)
def test_a_clock_that_is_off_is_a_warning(offset_seconds: float, side: str) -> None:
    (finding,) = inspect(GOOD, PG_18, offset_seconds)
    assert finding.level == "warning"
    assert side in finding.what


def test_a_clock_within_a_second_is_fine() -> None:
    assert levels({}, offset_seconds=0.9) == []


def test_connections_are_those_of_all_processes_of_a_server() -> None:
    facts = GOOD | {"max_connections": "50"}
    assert inspect(facts, PG_18, processes=3) == []
    (found,) = inspect(facts, PG_18, processes=4)
    assert "one server with 4 processes needs 49" in found.what
    assert "FAIRWAY_SERVER_PROCESSES" in found.remedy
