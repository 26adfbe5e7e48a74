"""`fairway shards`, as an operator types it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.api.house import open_house
from tests.cli.program import Run, fairway, said, sentence
from tests.postgres import connected, in_thread

from fairway.services.maintenance.tenant_mover import TenantMover


def test_shards_are_listed_and_split(run: Run) -> None:
    found = said(run("shards", "ls", "--json"))
    table = run("shards").out.splitlines()
    assert table[0].split() == ["shard", "owner", "term", "open", "tenants", "queued"]
    assert len([line for line in table[1:] if line and line[0].isdigit()]) == found["count"]
    assert table[-1].startswith(f"In all {found['count']} shard")
    assert f": {found['count']} owned by {found['shards'][0]['owner']}; " in table[-1]
    asked = sentence(run("shards", "split", "--to", str(found["count"] + 1)))
    assert asked.startswith(f"There are {found['count']} shards; this makes them")
    assert run("shards", "split", "--to", str(found["count"])).out.endswith("shards already.\n")
    too_many = sentence(run("shards", "split", "--to", str(found["count"] + 257)))
    assert "at most 256 more are made at a time" in too_many
    unknown = sentence(run("shards", "move", "nobody", "--to", "1"))
    assert unknown == "There is no tenant 'nobody'.", "what cannot be is not asked about"
    done = said(run("shards", "split", "--to", str(found["count"]), "-y", "--json"))
    assert done == {"before": found["count"], "count": found["count"]}
    fewer = sentence(run("shards", "split", "--to", "0", "-y"))
    assert "/to" in fewer or "to" in fewer


def test_nobody_is_asked_about_a_move_that_cannot_be(database_url: str, tmp_path: Path) -> None:
    with open_house(database_url, shard_count=8) as house:
        key = {"FAIRWAY_URL": house.url, "FAIRWAY_OPERATOR_KEY": house.operator_key}
        said(fairway(tmp_path, "tenants", "add", "lone", "shard=1", "--json", **key))
        said(fairway(tmp_path, "tenants", "add", "wide", "shard=2", "shards=2", "--json", **key))
        for tenant, to, answer in (
            ("lone", 0, "No tenant is moved to shard 0: its owner does what"),
            ("lone", 1, "The tenant is in shard 1 already."),
            ("lone", 2, "Shard 2 is in use. A tenant is moved to a shard without tenants"),
            ("wide", 1, "A tenant with several shards cannot be moved"),
        ):
            words = ("shards", "move", tenant, "--to", str(to))
            assert sentence(fairway(tmp_path, *words, **key)).startswith(answer)
        in_all = fairway(tmp_path, "shards", "ls", **key).out.splitlines()[-1]
        assert "; 2 tenants in 3 parts, " in in_all
        asked = sentence(fairway(tmp_path, "shards", "move", "lone", "--to", "3", **key))
        assert asked.startswith("lone stands still until all of it is in shard 3.")


async def _rows_move(dsn: str) -> None:
    async with connected(dsn) as connection:
        begun = "SET state = 'moving', moving_since = now() WHERE finished_at IS NULL"
        assert await connection.execute(f"UPDATE tenant_moves {begun}") == "UPDATE 1"


def test_who_ends_a_move_hears_what_becomes_of_the_tenant(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stand_still(*_: object) -> None:
        pass

    monkeypatch.setattr(TenantMover, "_go_on", stand_still)  # no step comes between two commands
    with open_house(database_url, shard_count=8) as house:
        key = {"FAIRWAY_URL": house.url, "FAIRWAY_OPERATOR_KEY": house.operator_key}

        def shards(*words: str) -> str:
            return fairway(tmp_path, "shards", *words, **key).out

        said(fairway(tmp_path, "tenants", "add", "lone", "shard=1", "--json", **key))
        begun = shards("move", "lone", "--to", "3", "-y")
        assert begun.startswith("lone moves from shard 1 to 3.")
        for more in (("--to", "4"), ("--wait", "2h"), ("--to", "4", "--wait", "2h", "-y")):
            both = sentence(fairway(tmp_path, "shards", "move", "lone", "--cancel", *more, **key))
            assert both.startswith("--cancel ends the move that is under way: say either that,")
        ended = shards("move", "lone", "--cancel")
        assert ended.endswith("All is as it was before. lone goes on in shard 1.\n")
        no_move = sentence(fairway(tmp_path, "shards", "move", "lone", "--cancel", **key))
        assert no_move == "The tenant 'lone' is not being moved."
        shards("move", "lone", "--to", "3", "-y")
        in_thread(_rows_move(database_url))
        back = shards("move", "lone", "--cancel")
        assert "what was moved goes back. lone stands still until all of it is in shard 1" in back
