"""Whether apps can be loaded, before anything is started that has to be ended for one that cannot.

Each is loaded once in a process of its own, as a runner does it: nothing of it stays here. Only
what is plainly a mistake in its text counts. An app that asks the platform for something while it
loads, or takes long for it, is left to its worker.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import IO, NamedTuple

from fairway.core.errors import InvalidRequest
from fairway.runtime.parent_death import die_with_parent

CHECK_SECONDS = 10.0
CANNOT_BE_LOADED = os.EX_CONFIG
#: What no platform mends that is not there yet.
MISTAKES = (ImportError, SyntaxError, NameError, AttributeError, TypeError, ValueError)


class _Check(NamedTuple):
    target: str
    process: subprocess.Popen[bytes]
    words: IO[bytes]

    def problem(self, ends_at: float) -> str:
        """What it said, if the app cannot be loaded."""
        try:
            status = self.process.wait(max(ends_at - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            return ""
        self.words.seek(0)
        return self.words.read().decode(errors="replace") if status == CANNOT_BE_LOADED else ""

    def end(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)  # also what it left behind
        self.process.wait()


def check_apps(targets: Sequence[str], environment: Mapping[str, str]) -> None:
    """InvalidRequest for the first that cannot be loaded; what it said stands above that."""
    ends_at = time.monotonic() + CHECK_SECONDS
    with ExitStack() as ending:
        checks = [_begin(target, environment, ending) for target in targets]
        for check in checks:
            if said := check.problem(ends_at):
                sys.stderr.write(said)
                raise InvalidRequest(f"{check.target} cannot be loaded; see the words above.")


def _begin(target: str, environment: Mapping[str, str], ending: ExitStack) -> _Check:
    words = ending.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  # the stack closes it
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, target],
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=words,
        stderr=words,
        start_new_session=True,  # Ctrl-C is for us
        preexec_fn=partial(die_with_parent, signal.SIGKILL),
    )
    check = _Check(target, process, words)
    ending.callback(check.end)
    return check


def main() -> None:
    """`python -m fairway.cli.processes.app_check TARGET`: in the loop that a runner has."""
    import asyncio

    status = asyncio.run(_load(sys.argv[1]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # whatever threads it has begun


async def _load(target: str) -> int:
    from fairway.sdk.app import App
    from fairway.sdk.loading import LoadError

    try:
        App.load(target)
    except LoadError as error:
        is_mistake = isinstance(error.__cause__ or error, MISTAKES)
        if is_mistake:
            sys.stderr.write(f"fairway: {error}\n")
        return CANNOT_BE_LOADED if is_mistake else 0
    return 0


if __name__ == "__main__":
    main()
