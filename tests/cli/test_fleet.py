"""The hands of the autoscaler that start no worker: a command, and a Deployment of a cluster."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from fairway.cli.autoscale import parsed
from fairway.cli.processes.fleet import FleetKeeper, parse_part, wish_of
from fairway.cli.processes.fleet_command import CommandActuator, filled, parse_template
from fairway.cli.processes.fleet_kubernetes import COST, ApiServer, DeploymentActuator, in_cluster
from fairway.cli.processes.fleet_workers import FleetTerms, FleetWorkers
from fairway.cli.remote import Remote
from fairway.core.autoscale.division import Part, PoolWish
from fairway.core.errors import InvalidRequest

SCALE = "/apis/apps/v1/namespaces/jobs/deployments/short/scale"


def test_parts() -> None:
    assert parse_part("2/3") == Part(2, 3)
    for text in ("0/3", "4/3", "1", "a/b", "1/0"):
        with pytest.raises(InvalidRequest, match="--part"):
            parse_part(text)


def test_settings_are_understood_or_said_how() -> None:
    assert parsed(("mode=dry_run", "maximum_workers=3")) == {
        "mode": "dry_run",
        "maximum_workers": 3,
    }
    for text in ("300", "5m"):
        assert parsed((f"down_after_seconds={text}",)) == {"down_after_seconds": 300.0}
    assert parsed(("down_after_seconds=",)) == {"down_after_seconds": None}
    with pytest.raises(InvalidRequest, match=r"^down_after_seconds: 'soon' is no duration"):
        parsed(("down_after_seconds=soon",))
    with pytest.raises(InvalidRequest, match="mode is off, dry_run or on, not 'dry-run'"):
        parsed(("mode=dry-run",))


def test_while_nobody_decides_the_minimum_is_kept() -> None:
    view = {"wanted_workers": 9, "minimum_workers": 2, "workers": 5, "may_go": ["a"]}
    assert wish_of(view | {"mode": "on"}) == PoolWish(9, 5, frozenset({"a"}))
    for mode in ("off", "dry_run"):
        assert wish_of(view | {"mode": mode}) == PoolWish(2, 5, frozenset())


def test_a_fleet_says_once_that_nobody_decides() -> None:
    view = {"pool": "short", "wanted_workers": 3, "minimum_workers": 2, "workers": 2, "may_go": []}
    views = [view | {"mode": "off"}, view | {"pool": "long", "mode": "off"}]
    keeper, events = _keeper(views), []
    for mode in ("off", "off", "on", "on", "dry_run"):
        views[0]["mode"] = mode
        with capture_logs() as lines:
            keeper._wishes()
        events += [(line["event"], line["pool"], line.get("keeps")) for line in lines]
    assert events == [
        ("pool is not scaled", "short", 2),
        ("pool is scaled", "short", None),
        ("pool is not scaled", "short", 2),
    ]


def test_a_pool_that_nobody_has_is_said() -> None:
    """It may be made later: the fleet waits for it."""
    keeper = _keeper([])
    with capture_logs() as lines:
        for _ in range(2):
            keeper._wishes()
    (line,) = lines
    assert line["event"] == "there is no such pool; nothing is started"


def _keeper(views: list[dict[str, Any]]) -> FleetKeeper:
    class Told(Remote):
        def get(self, path: str, **query: Any) -> Any:
            return {"pools": views}

    hand = CommandActuator("short", "true")
    return FleetKeeper([Told("http://told", "")], {"short": hand}, asyncio.Event(), asyncio.Event())


def test_a_template_is_filled_word_by_word() -> None:
    words = parse_template("./scale --pool={pool} {wanted} '{may_go}'")
    wish = PoolWish(3, 5, ["b c", "a"])
    assert filled(words, "short", wish) == ["./scale", "--pool=short", "3", "a,b c"]
    for template in ("", "./scale {unknown}", "./scale {", "'./scale"):
        with pytest.raises(InvalidRequest, match="--command"):
            parse_template(template)


async def test_a_command_runs_when_something_changes(tmp_path: Path) -> None:
    said = tmp_path / "said"
    hand = CommandActuator("short", f"sh -c 'echo {{wanted}} >> {said}'")
    for wanted in (3, 3, 4, 4, 2):
        await hand.act(PoolWish(wanted, wanted, ()))
    assert said.read_text().split() == ["3", "4", "2"]


async def test_a_command_that_fails_is_tried_again_later(tmp_path: Path) -> None:
    said = tmp_path / "said"
    hand = CommandActuator("short", f"sh -c 'echo {{wanted}} >> {said}; exit 1'")
    for wanted in (3, 3, 4, 5):
        await hand.act(PoolWish(wanted, wanted, ()))
    assert said.read_text().split() == ["3"], "not at once, whatever changes"
    gone = CommandActuator("short", str(tmp_path / "no-such-program"))
    await gone.act(PoolWish(1, 0, ()))


async def test_a_machine_without_room_for_a_worker_keeps_those_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def no_room(*words: str, **settings: object) -> None:
        raise BlockingIOError(11, "no room")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", no_room)
    workers = FleetWorkers(FleetTerms("short", ("shop:app",), 1.0), asyncio.Event(), "here")
    for _ in range(3):
        await workers.act(PoolWish(3, 0, ()))
    assert workers.names == []
    await workers.close(asyncio.Event())


class Cluster(ThreadingHTTPServer):
    """As much of a Kubernetes API server as is asked of it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replicas = 3
        self.pods: dict[str, dict[str, Any]] = {"p1": {}, "p2": {}, "p3": {}}
        self.calls: list[str] = []
        self.is_away = False


class _Handler(BaseHTTPRequestHandler):
    server: Cluster

    def do_GET(self) -> None:
        self._answer(self._scale() if self.path == SCALE else None)

    def do_PATCH(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        assert self.headers["content-type"] == "application/merge-patch+json"
        self.server.calls.append(self.path.rpartition("/")[2])
        if self.path == SCALE:
            self.server.replicas = body["spec"]["replicas"]
            return self._answer(self._scale())
        pod = self.server.pods.get(self.path.removeprefix("/api/v1/namespaces/jobs/pods/"))
        if pod is not None:
            pod |= body["metadata"]["annotations"]
        return self._answer(pod)

    def _scale(self) -> dict[str, Any]:
        return {"spec": {"replicas": self.server.replicas}}

    def _answer(self, body: dict[str, Any] | None) -> None:
        is_known = self.headers["authorization"] == "Bearer secret"
        status = (
            503 if self.server.is_away else 401 if not is_known else 404 if body is None else 200
        )
        content = json.dumps(body or {}).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    server = Cluster()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def hand(cluster: Cluster, tmp_path: Path) -> DeploymentActuator:
    token = tmp_path / "token"
    token.write_text("secret\n")
    url = f"http://127.0.0.1:{cluster.server_address[1]}"
    return DeploymentActuator(ApiServer(url, token, None), "jobs/short")


async def test_a_deployment_grows(cluster: Cluster, hand: DeploymentActuator) -> None:
    await hand.act(PoolWish(5, 3, ()))
    await hand.act(PoolWish(5, 3, ()))
    assert (cluster.replicas, cluster.calls) == (5, ["scale"])


async def test_idle_pods_are_marked_before_it_shrinks(
    cluster: Cluster, hand: DeploymentActuator
) -> None:
    await hand.act(PoolWish(2, 3, ["p2"]))
    assert cluster.pods["p2"] == {COST: "-1000"}
    assert (cluster.replicas, cluster.calls) == (2, ["p2", "scale"])
    await hand.act(PoolWish(2, 2, []))
    assert cluster.pods["p2"] == {COST: None}


async def test_it_shrinks_by_no_more_than_are_idle(
    cluster: Cluster, hand: DeploymentActuator
) -> None:
    await hand.act(PoolWish(1, 3, ["p1", "not-a-pod"]))
    assert cluster.replicas == 2


async def test_a_cluster_that_is_away_is_tried_again(
    cluster: Cluster, hand: DeploymentActuator
) -> None:
    cluster.is_away = True
    await hand.act(PoolWish(5, 3, ()))
    assert cluster.replicas == 3
    cluster.is_away = False
    await hand.act(PoolWish(5, 3, ()))
    assert cluster.replicas == 5


def test_where_a_pod_finds_its_cluster() -> None:
    found = in_cluster({"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"})
    assert found.url == "https://[fd00::1]:6443"
    with pytest.raises(InvalidRequest, match="no pod"):
        in_cluster({})
    with pytest.raises(InvalidRequest, match="namespace/name"):
        DeploymentActuator(found, "short")


async def test_nothing_is_left_to_end() -> None:
    await CommandActuator("short", "true").close(asyncio.Event())


def test_a_service_manager_hears_when_it_looks_and_when_it_stops(tmp_path: Path) -> None:
    """Also while no server answers: what is there is looked after."""
    heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    heard.bind(str(tmp_path / "notify"))
    heard.settimeout(60)
    words = ("fleet", "--pool", "short", "--command", "true", "--url", "http://127.0.0.1:9")
    environment = os.environ | {
        "NOTIFY_SOCKET": str(tmp_path / "notify"),
        "FAIRWAY_API_KEY": "fw_worker_1_1_1",
    }
    with heard, subprocess.Popen([sys.executable, "-m", "fairway", *words], env=environment) as one:
        try:
            assert heard.recv(1000) == b"READY=1\nSTATUS=looks after short\n"
            one.terminate()
            assert heard.recv(1000).startswith(b"STOPPING=1\n")
            assert one.wait(60) == 0
        finally:
            one.kill()
