"""`fairway operator-key`: the first key on a database of one's own."""

from __future__ import annotations

from pathlib import Path

from tests.cli.program import fairway


def test_the_first_key_on_a_database_of_ones_own(
    tmp_path: Path, server_url: str, database_url: str, empty_database_url: str
) -> None:
    made = fairway(tmp_path, "operator-key", FAIRWAY_DATABASE_URL=database_url)
    assert (made.status, made.err) == (0, ""), made
    given = {"FAIRWAY_URL": server_url, "FAIRWAY_OPERATOR_KEY": made.out.strip()}
    added = fairway(tmp_path, "tenants", "add", "acme", **given)
    assert added.status == 0, added
    assert "fw_tenant_" in added.out
    ended = fairway(tmp_path, "operator-key", FAIRWAY_DATABASE_URL=empty_database_url)
    assert (ended.status, ended.out) == (1, "")
    assert "`fairway init` makes it ready" in ended.err
    assert fairway(tmp_path, "operator-key").err.startswith("fairway: Set FAIRWAY_DATABASE_URL.")
