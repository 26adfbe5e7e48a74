"""Which workers might be spared: never the last that runs what its app brings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fairway.services.insight.fleet_look import without_keepers


def worker(key: str, types: str, *, busy: int = 0, is_closed: bool = False) -> Any:
    leases = dict.fromkeys(range(busy))
    return SimpleNamespace(key=key, types=frozenset(types), leases=leases, is_closed=is_closed)


@pytest.mark.parametrize(
    ("workers", "spare"),
    [
        ([worker("a", "xy"), worker("b", "xy")], "ab"),
        ([worker("a", "xy"), worker("b", "z")], ""),
        ([worker("a", "xy"), worker("b", "z"), worker("c", "xy", busy=1)], "a"),
        ([worker("a", "xy", is_closed=True), worker("b", "z"), worker("c", "xy")], "a"),
        ([worker("old", "x"), worker("new", "xy")], "old"),
        ([worker(str(n), chr(n)) for n in range(100)], ""),
    ],
    ids=["one app", "two apps", "the busy one stays", "the open one stays", "rolling", "very many"],
)
def test_of_each_app_one_worker_stays(workers: list[Any], spare: str) -> None:
    assert "".join(one.key for one in without_keepers(workers)) == spare
