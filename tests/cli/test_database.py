"""`fairway init`: an empty PostgreSQL becomes a platform, once."""

from __future__ import annotations

from pathlib import Path

from tests.cli.program import fairway

from fairway.core.keys import ApiKey


def test_an_empty_database_is_made_ready_once(tmp_path: Path, empty_database_url: str) -> None:
    made = fairway(tmp_path, "init", FAIRWAY_DATABASE_URL=empty_database_url)
    assert made.status == 0, made
    key = ApiKey.parse(made.out.strip())  # nothing else on standard output
    assert key is not None
    assert key.scope == "operator"
    assert "migrations applied" in made.err
    assert "fairway server" in made.err
    again = fairway(tmp_path, "init", FAIRWAY_DATABASE_URL=empty_database_url)
    assert (again.status, again.out) == (0, "")
    assert "up to date" in again.err
    assert "`fairway operator-key` makes another" in again.err
    assert fairway(tmp_path, "init").err.startswith("fairway: Set FAIRWAY_DATABASE_URL,")
