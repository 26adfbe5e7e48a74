"""A process that has read the commands' modules and forks for each call of `fairway`.

`python -m tests.cli.zygote FD`: each request on the socket FD brings the words, the folder and the
environment, and three pipes: for the status, standard output and standard error. What is forked is
a process like any other (own memory, own exit, own streams); only the third of a second in which
Python reads the same modules again is spared. Who measures that, or the start itself, starts the
program anew.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import sys
import time

from fairway.cli.main import COMMANDS

CALL_SECONDS = 60
WORDS_MAX = 10_000  # letters of one call
MESSAGE_BYTES = 100_000
STARTING = {"up", "server", "worker", "postgres", "bench", "lab"}  # need more than they are worth


def preload() -> None:
    for commands in COMMANDS.values():
        for name, (target, _) in commands.items():
            if name not in STARTING:
                importlib.import_module(f"fairway.{target.partition(':')[0]}")


def until_called(requests: socket.socket) -> None:
    """Returns in a child that is to be the program; never in the zygote itself."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # those in between need no burial
    while True:
        text, pipes, _, _ = socket.recv_fds(requests, MESSAGE_BYTES, 3)
        if not text:
            os._exit(0)
        if os.fork() == 0:
            requests.close()
            _between(json.loads(text), *pipes)
            return
        for pipe in pipes:
            os.close(pipe)


def _between(call: dict[str, object], status: int, out: int, err: int) -> None:
    """Forks the program, waits for it, and says how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    program = os.fork()
    if program == 0:
        os.close(status)
        _become(call, out, err)
        return
    os.close(out)
    os.close(err)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(program, signal.SIGKILL))
    signal.alarm(CALL_SECONDS)
    _, ended = os.waitpid(program, 0)
    os.write(status, str(os.waitstatus_to_exitcode(ended)).encode())
    os._exit(0)


def _become(call: dict[str, object], out: int, err: int) -> None:
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.close(out)
    os.close(err)
    words, environment = call["words"], call["environment"]
    assert isinstance(words, list)
    assert isinstance(environment, dict)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(str(call["folder"]))
    sys.argv = words
    sys.path[0] = os.path.dirname(words[0])  # of a script, where it stands


if __name__ == "__main__":
    preload()
    until_called(socket.socket(fileno=int(sys.argv[1])))
    from fairway.__main__ import run

    run()
