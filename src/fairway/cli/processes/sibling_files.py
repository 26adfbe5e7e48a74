"""What the parent of several server processes makes, so that they can hand over connections.

A channel to each process, and a file in which each says whether it takes any, and how much it has
to do. The parent keeps all
of it over their lives: what was handed to a process that has just ended waits for its next life.
It never looks into a channel itself. How they are used is in `api/http/siblings.py`.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress

from fairway.core.server_processes import SAYING_BYTES, SiblingFiles

#: About ten wait in a channel. Between two ends of a pair the kernel counts bytes alone, and by
#: itself it lets hundreds wait: all of them would hang with a process that does.
CHANNEL_BYTES = 4096


class SiblingChannels:
    def __init__(self, processes: int) -> None:
        self._pids_fd = os.memfd_create("fairway-siblings")
        os.ftruncate(self._pids_fd, processes * SAYING_BYTES)
        kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK  # a message each: never half a connection
        pairs = [socket.socketpair(socket.AF_UNIX, kind) for _ in range(processes)]
        self._taken = [taken for taken, _ in pairs]
        self._handed = [handed for _, handed in pairs]
        for handed in self._handed:
            handed.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, CHANNEL_BYTES)

    def files_of(self, number: int) -> SiblingFiles:
        """Those of this process, from 1."""
        handed_fds = tuple(one.fileno() for one in self._handed)
        return SiblingFiles(self._pids_fd, self._taken[number - 1].fileno(), handed_fds)

    def close(self) -> None:
        for one in (*self._taken, *self._handed):
            one.close()
        with suppress(OSError):
            os.close(self._pids_fd)
