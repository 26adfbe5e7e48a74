"""The `fairway` program as a person runs it: in a folder of its own, with a clean environment.

Most calls are forks of one process that has read the modules (`zygote.py`).
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.cli.zygote import CALL_SECONDS, STARTING, WORDS_MAX

ROOT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).parent / "fairway"


class Ended(NamedTuple):
    status: int
    out: str
    err: str


def fairway(folder: Path, *words: str, **environment: str) -> Ended:
    """An environment variable that is empty is not given at all."""
    is_for_python = any(name.startswith(("PYTHON", "LC_", "LANG")) for name in environment)
    is_large = sum(map(len, (*words, *environment.values()))) > WORDS_MAX
    if is_for_python or is_large or (words[:1] and words[0] in STARTING):
        return fairway_anew(folder, *words, **environment)
    return _zygote().call(folder, words, _given(environment))


def fairway_anew(folder: Path, *words: str, **environment: str) -> Ended:
    """From the first moment on, as a shell starts it."""
    ran = subprocess.run(
        [PROGRAM, *words],
        cwd=folder,
        env=_given(environment),
        capture_output=True,
        text=True,
        timeout=CALL_SECONDS,
        check=False,
    )
    return Ended(ran.returncode, ran.stdout, ran.stderr)


def _given(environment: dict[str, str]) -> dict[str, str]:
    given = {"PATH": "/usr/bin:/bin", "COLUMNS": "200", **environment}
    return {name: value for name, value in given.items() if value}


class Zygote:
    """The other end of `zygote.py`."""

    def __init__(self) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "tests.cli.zygote", str(theirs.fileno())],
                cwd=ROOT,
                env={"PATH": "/usr/bin:/bin"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,  # as the streams of a call are, which take their places
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
            )
        atexit.register(self.close)

    def close(self) -> None:
        self._requests.close()
        self._child.communicate(timeout=CALL_SECONDS)

    def call(self, folder: Path, words: Sequence[str], environment: dict[str, str]) -> Ended:
        asked = {
            "words": [str(PROGRAM), *words],
            "folder": str(folder),
            "environment": environment,
        }
        pipes = [os.pipe() for _ in range(3)]
        ours = [ours for ours, _ in pipes]
        theirs = [theirs for _, theirs in pipes]
        try:
            socket.send_fds(self._requests, [json.dumps(asked).encode()], theirs)
        finally:
            for one in theirs:
                os.close(one)
        with ThreadPoolExecutor(len(ours)) as readers:
            status, out, err = readers.map(_all_of, ours)
        return Ended(int(status), out, err)


def _all_of(pipe: int) -> str:
    with os.fdopen(pipe, encoding="utf-8") as file:
        return file.read()


@cache
def _zygote() -> Zygote:
    return Zygote()


Run = Callable[..., Ended]


def said(ended: Ended) -> Any:
    assert (ended.status, ended.err) == (0, ""), ended
    return json.loads(ended.out)


def sentence(ended: Ended) -> str:
    """What a command that went wrong says: one sentence, no stack."""
    assert ended.status == 1, ended
    assert ended.out == ""
    assert ended.err.startswith("fairway: ")
    assert len(ended.err.splitlines()) == 1, ended.err
    return ended.err.removeprefix("fairway: ").strip()
