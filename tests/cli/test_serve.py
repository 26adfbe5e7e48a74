"""`fairway server` without a database: it says which one, and where it looked."""

from __future__ import annotations

from pathlib import Path

from tests.acceptance.house import free_port
from tests.cli.program import fairway


def test_a_server_whose_database_is_away_says_where(tmp_path: Path) -> None:
    ended = fairway(
        tmp_path, "server", FAIRWAY_PORT="0", FAIRWAY_DATABASE_URL="postgresql://a:b@127.0.0.1:1/x"
    )
    assert "FAIRWAY_PORT must be from 1 to 65535, not 0." in ended.err
    url = "postgresql://somebody:secret@127.0.0.1:1/nowhere"
    ended = fairway(tmp_path, "server", "--port", str(free_port()), FAIRWAY_DATABASE_URL=url)
    assert ended.status == 1
    assert "No connection to the database at 127.0.0.1:1/nowhere: " in ended.err
    assert "FAIRWAY_DATABASE_URL" in ended.err
    assert "Traceback" not in ended.err
    assert "secret" not in ended.err


def test_a_server_needs_a_database(tmp_path: Path) -> None:
    ended = fairway(tmp_path, "server")
    assert ended.status == 1
    assert ended.err.startswith("fairway: Set FAIRWAY_DATABASE_URL")
