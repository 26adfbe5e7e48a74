"""Which of a region's servers is asked, and what is known when one of them gave no answer."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.core.regions.region_map import region_map
from fairway.runtime.plain_http import Reply
from fairway.services.regions.peer_calls import RegionAway, RegionPeers


class Server:
    """One that answers with this status, or hangs."""

    def __init__(self, status: int | None) -> None:
        self._status = status
        self.asked = 0

    async def call(self, *asked: Any) -> Reply:
        self.asked += 1
        if self._status is None:
            raise TimeoutError
        return Reply(self._status, b"said")


def peers_of(monkeypatch: pytest.MonkeyPatch, *servers: Server) -> RegionPeers:
    urls = [f"http://{n}.example" for n in range(len(servers))]
    regions = region_map("us", f"us=http://here.example;eu={','.join(urls)}")
    assert regions is not None
    peers = RegionPeers(regions, "a secret of both regions")
    monkeypatch.setattr(peers, "_client", dict(zip(urls, servers, strict=True)).__getitem__)
    return peers


async def test_an_answer_says_whether_another_server_may_have_it_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    peers = peers_of(monkeypatch, Server(None), Server(200))
    assert await peers.call_in_turn("eu", "/", b"", 1) == (b"said", True)
    assert await peers.call_in_turn("eu", "/", b"", 1) == (b"said", False), "asked first now"
    peers = peers_of(monkeypatch, Server(None), Server(404))
    with pytest.raises(RegionAway) as refused:
        await peers.call("eu", "/", b"", 1)
    assert refused.value.is_open


async def test_one_that_hangs_is_not_asked_first_again(monkeypatch: pytest.MonkeyPatch) -> None:
    hung, good = Server(None), Server(200)
    peers = peers_of(monkeypatch, hung, good)
    with pytest.raises(RegionAway):
        await peers.ask_one("eu", "/", b"", 1)
    assert good.asked == 0
    assert await peers.ask_one("eu", "/", b"", 1) == b"said"
    assert hung.asked == 1
