"""A process that has read the modules of servers and workers, and forks for each that is started.

`python -m tests.acceptance.zygote FD`: each request on the socket FD brings the words and the
environment, and a file for what is said; the answer is the process's number. What is forked is a
child of whoever asks, not of this process (CLONE_PARENT): it is waited for, signalled and killed
as if it had been started there, in a session of its own. Only the seconds in which Python reads
the same modules again are spared. Who measures memory, or the start itself, starts a program anew.

A worker keeps no spare interpreters here, which few tests would live to need and each would start;
ACCEPTANCE_SPARES in its settings says how many it keeps where runners are killed.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import platform
import signal
import socket
import sys
import time

from fairway.worker.runners import spares

MODULES = (
    "fairway.cli.main",
    "fairway.cli.processes.serve",
    "fairway.cli.processes.work",
    "fairway.worker.keeper",
    "fairway.worker.runners.start_failures",
)
MESSAGE_BYTES = 100_000
NOT_FORKED = 0  # an answer: it must be started anew

_CLONE = {"x86_64": 56, "aarch64": 220}  # the number of the call
_CLONE_PARENT, _CLONE_CHILD_SETTID, _CLONE_CHILD_CLEARTID = 0x8000, 0x0100_0000, 0x0020_0000
_PR_GET_TID_ADDRESS = 40


def fork_sibling() -> int:
    """As os.fork, but the child's parent is our own; negative where that cannot be had.

    These are the flags of the C library's own fork, and one more.
    """
    if platform.machine() not in _CLONE:
        return -1
    library, tid = ctypes.PyDLL(None), ctypes.c_void_p()
    if library.prctl(_PR_GET_TID_ADDRESS, ctypes.byref(tid), 0, 0, 0) != 0:
        return -1
    flags = _CLONE_PARENT | _CLONE_CHILD_SETTID | _CLONE_CHILD_CLEARTID | signal.SIGCHLD
    call, none = ctypes.c_long(_CLONE[platform.machine()]), ctypes.c_void_p()
    ctypes.pythonapi.PyOS_BeforeFork()
    # Of the last two, one is the address and the other is not looked at, by kind of machine.
    pid: int = library.syscall(call, ctypes.c_ulong(flags), none, none, tid, tid)
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    return pid


def until_called(requests: socket.socket) -> None:
    """Returns in a child that is to be the program; never in the zygote itself."""
    while True:
        text, files, _, _ = socket.recv_fds(requests, MESSAGE_BYTES, 1)
        if not text:
            os._exit(0)
        pid = fork_sibling()
        if pid == 0:
            requests.close()
            _become(json.loads(text), *files)
            return
        for file in files:
            os.close(file)
        requests.send(str(max(pid, NOT_FORKED)).encode())


def _become(call: dict[str, object], log: int) -> None:
    os.setsid()
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    words, environment = call["words"], call["environment"]
    assert isinstance(words, list)
    assert isinstance(environment, dict)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    spares.SPARES = int(environment.get("ACCEPTANCE_SPARES", "0"))
    sys.argv = words


if __name__ == "__main__":
    for name in MODULES:
        importlib.import_module(name)
    until_called(socket.socket(fileno=int(sys.argv[1])))
    from fairway.__main__ import run

    run()
