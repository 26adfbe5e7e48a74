"""The address that a server listens on: taken by itself, or held for it by `fairway up`.

Who holds it for a server can start that one again without anybody being turned away meanwhile:
whoever connects waits in line at the address.
"""

from __future__ import annotations

import os
import socket
from collections.abc import MutableMapping

from fairway.core.errors import InvalidRequest
from fairway.runtime.settings import Settings

BACKLOG = 512  # all that wait are taken in at once, some hundredths of a second
LISTEN_FD = "FAIRWAY_LISTEN_FD"


def listen(settings: Settings) -> socket.socket:
    """Take the address before anything else starts, so that a taken port is said at once."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # Named as TCP, so that event loops know to send small replies without delay.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise InvalidRequest(
            f"Cannot listen on {settings.host}:{settings.port}: {error.strerror}."
            " Is another server running? Choose another port with --port."
        ) from None
    listener.listen(BACKLOG)
    return listener


def listener_of(environment: MutableMapping[str, str], settings: Settings) -> socket.socket:
    """The one that was handed down, else one of our own."""
    descriptor = environment.pop(LISTEN_FD, "")
    if not descriptor.isdecimal():
        return listen(settings)
    os.set_inheritable(int(descriptor), False)
    return socket.socket(fileno=int(descriptor))
