"""Connections handed to another process of this server: the one that owns what is sent on them.

A request that is passed on costs two processes; a connection that is handed over once costs nothing
afterwards. It goes between two requests: everything that was read is answered, the answer has left,
and what the client has sent meanwhile is still in the socket, and goes with it. So nothing but the
socket travels, over a channel that the parent of the processes made (`sibling_files.py`): a message
there holds one, at most some ten wait, and where one cannot be sent at once it stays.

Each says how much it has to do, in memory that all share: to one that is full, or behind while we
are not, nothing is handed (`core/ownership/connection_moves.py`). Who takes it has no more room for
it than for anybody: then it is sent back, and stays there. What
arrives while a process ends is answered there, or by its next life. Not handed over: what is no
HTTP any more (WebSockets, lines between servers), is encrypted, or is in the midst of anything.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Callable
from mmap import mmap
from typing import Any, NamedTuple

from fairway.core.ids import TenantId
from fairway.core.ownership.connection_moves import ProcessLoad, may_have_more
from fairway.core.server_processes import SAYING_BYTES, ProcessGroup

_FACTS = struct.Struct("<qIHB")  # tenant, moves, from which process, whether it comes back
_SAYING = struct.Struct("<qHH4x")  # the process, or 0: it takes none; and its load
_LOAD = struct.Struct("<HH")
_LOAD_AT = 8
TAKEN_AT_ONCE = 16


class Handed(NamedTuple):
    """What is known of a connection that goes to another process."""

    tenant: TenantId  # whose requests it has carried
    moves: int
    sender: int  # a number of a process
    is_back: bool  # there was no room for it where it went

    def packed(self) -> bytes:
        return _FACTS.pack(self.tenant, self.moves, self.sender, self.is_back)

    @classmethod
    def of(cls, text: bytes) -> Handed:
        tenant, moves, sender, is_back = _FACTS.unpack(text)
        return cls(TenantId(tenant), moves, sender, bool(is_back))


class Siblings:
    """The other processes of this server, as connections go to them and come from them."""

    def __init__(self, group: ProcessGroup) -> None:
        files = group.files
        for descriptor in (files.taken_fd, files.pids_fd, *files.handed_fds):
            os.set_inheritable(descriptor, False)
        self.number = group.number
        self._taken = socket.socket(fileno=files.taken_fd)
        self._handed = [socket.socket(fileno=one) for one in files.handed_fds]
        self._load = ProcessLoad(0, 0)
        self._pids = mmap(files.pids_fd, len(group.urls) * SAYING_BYTES)

    def begin(self, take: Callable[[socket.socket, Handed], None]) -> None:
        """From now on `take` is given what others hand over."""
        asyncio.get_running_loop().add_reader(self._taken, self._take, take)
        self._say(os.getpid())

    def tell(self, load: ProcessLoad) -> None:
        """How much we have to do, from now on."""
        self._load = load
        at = (self.number - 1) * SAYING_BYTES + _LOAD_AT
        _LOAD.pack_into(self._pids, at, *(min(one, 0xFFFF) for one in load))

    def leave(self) -> None:
        """Nothing more is to be handed to us; what is on its way is still taken."""
        self._say(0)

    def close(self) -> None:
        """What comes from now on waits for our next life."""
        self.leave()  # in any case: one that fails before it has started never said so
        asyncio.get_running_loop().remove_reader(self._taken)
        for one in (self._taken, *self._handed):
            one.close()  # our hold on it: the parent has another

    def hand(self, number: int, descriptor: int, facts: Handed) -> bool:
        """Whether it is on its way; then it is not ours any more."""
        if not self._takes(number, is_back=facts.is_back):
            return False
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", descriptor))]
        try:
            self._handed[number - 1].sendmsg([facts.packed()], rights)
        except OSError:  # too many wait there, or too much is on its way on this machine
            return False
        return True

    def move(self, number: int, transport: Any, facts: Handed) -> bool:
        """The same for one that our loop serves: it is forgotten here, not closed."""
        descriptor = descriptor_of(transport)
        if descriptor is None or not self.hand(number, descriptor, facts):
            return False
        transport.abort()  # our hold on it: nothing is read here any more, and nothing is said
        return True

    def _say(self, pid: int) -> None:
        _SAYING.pack_into(self._pids, (self.number - 1) * SAYING_BYTES, pid, *self._load)

    def _takes(self, number: int, *, is_back: bool) -> bool:
        """Whether it said that it takes connections, has room or had this one before, and lives."""
        pid, full, busy = _SAYING.unpack_from(self._pids, (number - 1) * SAYING_BYTES)
        if not pid or not (is_back or may_have_more(ProcessLoad(full, busy), self._load)):
            return False
        try:
            os.kill(pid, 0)
        except OSError:  # it has gone
            return False
        return True

    def _take(self, take: Callable[[socket.socket, Handed], None]) -> None:
        for _ in range(TAKEN_AT_ONCE):
            try:
                text, files, *_ = socket.recv_fds(self._taken, _FACTS.size, 1)
            except OSError:  # nothing more is there
                return
            for descriptor in files:
                take(socket.socket(fileno=descriptor), Handed.of(text))


def descriptor_of(transport: Any) -> int | None:
    """Of a plain connection that is between two requests, as far as its transport can tell."""
    if transport.is_closing() or transport.get_write_buffer_size():
        return None
    carried = transport.get_extra_info("socket")
    is_plain = transport.get_extra_info("ssl_object") is None and carried is not None
    return carried.fileno() if is_plain and carried.fileno() >= 0 else None
