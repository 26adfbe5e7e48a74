"""`fairway check`: what is wrong, all of it at once, and an exit status that scripts can use."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.program import fairway


def test_an_empty_folder_is_in_order(tmp_path: Path) -> None:
    ended = fairway(tmp_path, "check")
    assert ended.status == 0
    assert ended.out.splitlines()[-1].startswith("ok")
    assert list(tmp_path.iterdir()) == []


def test_a_real_database_is_looked_at(tmp_path: Path, database_url: str) -> None:
    """The tests' PostgreSQL has its durability turned off, which is what `check` must find."""
    ended = fairway(tmp_path, "check", FAIRWAY_DATABASE_URL=database_url)
    assert ended.status == 1
    assert "error" in ended.out
    assert "fsync" in ended.out


def test_a_database_that_is_away_is_named(tmp_path: Path) -> None:
    ended = fairway(tmp_path, "check", "--database-url", "postgresql://127.0.0.1:1/nowhere")
    assert ended.status == 1
    assert ended.out.startswith("error  no connection to the database")
    assert "Traceback" not in ended.out + ended.err


def test_wrong_settings_are_all_told_at_once(tmp_path: Path) -> None:
    ended = fairway(
        tmp_path, "check", FAIRWAY_TERM_SECONDS="0.1", FAIRWAY_LEASE_SECONDS="huge=3",
        FAIRWAY_SHARD_COUNT="0",
    )  # fmt: skip
    assert ended.status == 1
    for name in ("FAIRWAY_TERM_SECONDS", "FAIRWAY_LEASE_SECONDS", "FAIRWAY_SHARD_COUNT"):
        assert name in ended.out


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("FAIRWAY_PORTT", "1", "There is no setting FAIRWAY_PORTT. Did you mean FAIRWAY_PORT?"),
        ("FAIRWAY_PORT", "many", "FAIRWAY_PORT is 'many', which is no int."),
        ("FAIRWAY_LEASE_SECONDS", "short", "FAIRWAY_LEASE_SECONDS is 'short', which is no"),
    ],
)
def test_a_setting_that_cannot_be_read_is_one_sentence(
    tmp_path: Path, name: str, value: str, words: str
) -> None:
    ended = fairway(tmp_path, "check", **{name: value})
    assert ended.status == 1
    assert ended.err.startswith(f"fairway: {words}")
    assert len(ended.err.splitlines()) == 1
