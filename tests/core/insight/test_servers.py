"""One word for a server: what is worst of it is what is said."""

from __future__ import annotations

import pytest

from fairway.core.insight.servers import ListedServer, ServerState

LIVE = ListedServer("a", "http://a", True, False, True, None, 0.1, 4, 4, 0, None)


@pytest.mark.parametrize(
    ("one", "word"),
    [
        (LIVE, "live"),
        (LIVE._replace(shares_work=True), "live"),
        (LIVE._replace(shards=0), "live"),
        (LIVE._replace(shares_work=True, shards=0), "standby"),
        (LIVE._replace(owns_shards=False, shares_work=True, shards=0), "answers_only"),
        (LIVE._replace(owns_shards=False, stood_in=4), "standing_in"),
        (LIVE._replace(is_leaving=True, stood_in=4), "leaving"),
        (LIVE._replace(is_there=False, is_leaving=True), "gone"),
    ],
)
def test_a_server_has_one_state(one: ListedServer, word: ServerState) -> None:
    assert one.state == word
