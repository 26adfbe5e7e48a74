"""Servers and workers as forks of a process that has read their modules; see `zygote.py`."""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from tests.acceptance.zygote import MESSAGE_BYTES, NOT_FORKED

import fairway

ROOT = Path(__file__).parents[2]
FORKED = {"server", "worker"}
PROGRAM = str(Path(fairway.__file__).with_name("__main__.py"))  # as `python -m fairway` has it
END_SECONDS = 10
LOOK_SECONDS = 0.01  # between two looks at one that is waited for


class Fork:
    """A child that another process forked for us; of subprocess.Popen what is needed here."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._status: int | None = None

    def poll(self) -> int | None:
        if self._status is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status

    def wait(self, timeout: float) -> int:
        gives_up_at = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > gives_up_at:
                raise TimeoutError(f"process {self.pid} has not ended")
            time.sleep(LOOK_SECONDS)
        return status

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


class Zygote:
    """The other end of `zygote.py`."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = _of_python(environment)
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "tests.acceptance.zygote", str(theirs.fileno())],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        atexit.register(self.close)

    def close(self) -> None:
        self._requests.close()
        self._child.wait(END_SECONDS)

    def suits(self, environment: Mapping[str, str]) -> bool:
        """What Python reads when it starts was read with the zygote."""
        return _of_python(environment) == self._environment

    def fork(self, words: Sequence[str], environment: Mapping[str, str], log: int) -> Fork | None:
        asked = json.dumps({"words": [PROGRAM, *words], "environment": dict(environment)}).encode()
        if len(asked) > MESSAGE_BYTES or not self.suits(environment):
            return None
        socket.send_fds(self._requests, [asked], [log])
        pid = int(self._requests.recv(MESSAGE_BYTES))
        return None if pid == NOT_FORKED else Fork(pid)


def fork(words: Sequence[str], environment: Mapping[str, str], log: int) -> Fork | None:
    """None where it must be started anew: another command, or a machine that cannot do this."""
    return _zygote().fork(words, environment, log) if words[0] in FORKED else None


def _of_python(environment: Mapping[str, str]) -> dict[str, str]:
    names = ("PYTHON", "LC_", "LANG")
    return {name: value for name, value in environment.items() if name.startswith(names)}


@cache
def _zygote() -> Zygote:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("FAIRWAY_")}
    return Zygote(clean | {"PYTHONUNBUFFERED": "1"})
