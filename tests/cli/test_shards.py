"""`fairway shards`, as an operator types it."""

from __future__ import annotations

from tests.cli.program import Run, said, sentence


def test_shards_are_listed_and_split(run: Run) -> None:
    found = said(run("shards", "ls", "--json"))
    table = run("shards").out.splitlines()
    assert table[0].split() == ["shard", "owner", "term", "open", "tenants", "queued"]
    assert len([line for line in table[1:] if line and line[0].isdigit()]) == found["count"]
    asked = sentence(run("shards", "split", "--to", str(found["count"] + 1)))
    assert asked.startswith(f"There are {found['count']} shards; this makes them")
    assert run("shards", "split", "--to", str(found["count"])).out.endswith("shards already.\n")
    unknown = sentence(run("shards", "move", "nobody", "--to", "1"))
    assert unknown == "There is no tenant 'nobody'.", "what cannot be is not asked about"
    done = said(run("shards", "split", "--to", str(found["count"]), "-y", "--json"))
    assert done == {"before": found["count"], "count": found["count"]}
    fewer = sentence(run("shards", "split", "--to", "0", "-y"))
    assert "/to" in fewer or "to" in fewer
