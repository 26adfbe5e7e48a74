"""Which of a region's servers is asked, and what is known when one of them gave no answer."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.core.regions.region_map import region_map
from fairway.runtime.plain_http import Reply
from fairway.services.regions.peer_calls import RegionAway, RegionPeers, RegionRequest


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


class Refusing(Server):
    async def call(self, *asked: Any) -> Reply:
        raise ConnectionRefusedError


async def test_what_takes_a_caller_too_long_says_nothing_of_the_region(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A log stream of one tenant, and nobody else's call was passed on any more."""
    hung = Server(None)
    peers = peers_of(monkeypatch, hung, Server(200))
    asked = RegionRequest("GET", "/v1/jobs/x/logs", b"", "", may_repeat=True, of_a_caller=True)
    for _ in range(3):
        with pytest.raises(RegionAway):
            await peers.pass_on("eu", asked, 1)
    assert not peers.is_away("eu")
    assert hung.asked == 3, "nor is it asked of the next one for as long again"
    peers = peers_of(monkeypatch, Refusing(200), Refusing(200))
    with pytest.raises(RegionAway):
        await peers.pass_on("eu", asked, 1)
    assert peers.is_away("eu")


async def test_who_runs_and_refuses_our_secret_is_away_for_another_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A failover of a region in good health was advised for it."""
    peers = peers_of(monkeypatch, Server(404), Refusing(200))
    with pytest.raises(RegionAway):
        await peers.ask_any("eu", "/", 1)
    assert peers.is_away("eu")
    assert peers.refusing == {"eu"}
    peers = peers_of(monkeypatch, Server(None), Refusing(200))
    with pytest.raises(RegionAway):
        await peers.ask_any("eu", "/", 1)
    assert peers.refusing == set()
