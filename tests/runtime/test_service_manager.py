"""systemd's words, said to a real socket; and nothing to nobody."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairway.runtime.service_manager import READY_FD, ServiceManager


@pytest.fixture(params=["file", "abstract"])
def listener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    address = str(tmp_path / "n") if request.param == "file" else f"@fairway-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(address if address[0] == "/" else "\0" + address[1:])
        heard.settimeout(60)
        yield heard, address


def test_it_says_what_systemd_wants_to_hear(listener: tuple[socket.socket, str]) -> None:
    heard, address = listener
    environment = {"NOTIFY_SOCKET": address, "PATH": "/bin"}
    manager = ServiceManager.of(environment)
    assert environment == {"PATH": "/bin"}, "children would speak in our name"
    manager.starting("PostgreSQL\nrecovers", 20)
    manager.ready("at http://127.0.0.1:8700")
    manager.stopping("draining")
    assert [heard.recv(1000).decode() for _ in range(3)] == [
        "STATUS=PostgreSQL recovers\nEXTEND_TIMEOUT_USEC=20000000\n",
        "READY=1\nSTATUS=at http://127.0.0.1:8700\n",
        "STOPPING=1\nSTATUS=draining\n",
    ]


async def test_it_beats_if_it_was_asked_to(listener: tuple[socket.socket, str]) -> None:
    heard, address = listener
    heard.setblocking(False)
    words = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "20000", "WATCHDOG_PID": str(os.getpid())}
    manager = ServiceManager.of(words)
    manager.ready("")
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(60):
        said = [await loop.sock_recv(heard, 1000) for _ in range(3)]
    assert said == [b"READY=1\nSTATUS=\n", b"WATCHDOG=1\n", b"WATCHDOG=1\n"]


def test_it_says_ready_to_a_parent() -> None:
    read, write = os.pipe()
    manager = ServiceManager.of({READY_FD: str(write)})
    manager.ready("")
    assert os.read(read, 1000) == b"READY=1\nSTATUS=\nMAINPID=%d\n" % os.getpid()
    os.close(read)
    manager.stopping("")  # nobody reads: no matter
    os.close(write)


@pytest.mark.parametrize("address", ["", "/no/such/socket", "vsock:2:1"])
def test_nobody_hears_nothing(address: str) -> None:
    manager = ServiceManager.of({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "words"})
    manager.ready("")
    manager.stopping("")
