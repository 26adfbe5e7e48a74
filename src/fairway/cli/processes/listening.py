"""The addresses that a server listens on: taken by itself, or held for it by who started it.

Who holds them for a server can start that one again without anybody being turned away meanwhile:
whoever connects waits in line at the address. Several processes listen at one shared address, each
at one of its own besides.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import MutableMapping
from typing import NamedTuple

from fairway.core.errors import InvalidRequest
from fairway.core.server_processes import ProcessGroup
from fairway.runtime.settings import Settings

BACKLOG = 1024  # who connects while a busy loop is at its work waits in this line
#: The event loop takes one connection a round from each socket that listens, and a round of a busy
#: server takes a tenth of a second: with one socket, two hundred who came at once waited for 10 s.
ACCEPTED_AT_ONCE = 16
LISTEN_FD = "FAIRWAY_LISTEN_FD"


class Listeners(NamedTuple):
    """Where one server process listens."""

    public: socket.socket
    own: socket.socket | None = None  # which no other process has
    group: ProcessGroup | None = None  # those that listen at the public one


def listen(settings: Settings) -> socket.socket:
    """Take the address before anything else starts, so that a taken port is said at once."""
    return listen_at(settings.host, settings.port, "--port")


def listen_at(host: str, port: int, setting: str) -> socket.socket:
    """Port 0 is any that is free; `setting` is what chooses another."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, so that event loops know to send small replies without delay.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        advice = ""
        if error.errno == errno.EADDRINUSE:
            advice = f" Is another server running? Choose another port with {setting}."
        raise InvalidRequest(f"Cannot listen on {host}:{port}: {error.strerror}.{advice}") from None
    listener.listen(BACKLOG)
    return listener


def accepting(listener: socket.socket) -> list[socket.socket]:
    """The same address as often as connections are to be taken from it in one round of the loop."""
    return [listener, *(listener.dup() for _ in range(ACCEPTED_AT_ONCE - 1))]


def listeners_of(environment: MutableMapping[str, str], settings: Settings) -> Listeners:
    """Those that were handed down, else one that we take ourselves."""
    public = _handed_down(environment.pop(LISTEN_FD, ""))
    if public is None:
        return Listeners(listen(settings))
    group = ProcessGroup.of(environment)
    own = None if group is None else _handed_down(str(group.listen_fd))
    return Listeners(public, own, group)


def _handed_down(descriptor: str) -> socket.socket | None:
    if not descriptor.isdecimal():
        return None
    os.set_inheritable(int(descriptor), False)
    return socket.socket(fileno=int(descriptor))
