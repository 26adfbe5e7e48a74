"""`fairway top`: the overview, live in a terminal, until q or Ctrl-C.

It asks `GET /v1/overview` every other second, whoever looks: an operator's key shows the platform,
a tenant's key that tenant. A server that does not answer for a while leaves the last screen
standing, with a word that it is old.
"""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from cyclopts import Parameter

from fairway.cli.remote import PLAIN, Options, Remote
from fairway.cli.terminal.output import is_terminal
from fairway.core.errors import Unavailable

PATH = "/v1/overview"
LOOK_SECONDS = 2.0


def top(
    *,
    once: Annotated[bool, Parameter(negative="")] = False,
    options: Options = PLAIN,
) -> None:
    """Pools, rates, ages and alarms as they are now, until q or Ctrl-C. An operator's key shows
    the platform, a tenant's key that tenant.

    Parameters
    ----------
    once
        Print one screen and end; so it does where there is no terminal.
    """
    remote = options.operator() if options.has_key("operator") else options.tenant()
    overview = remote.get(PATH)
    if options.form != "table":
        options.record(overview)
    else:
        _show(remote, overview, is_live=is_terminal() and not once)


def _show(remote: Remote, overview: dict[str, Any], *, is_live: bool) -> None:
    from rich.console import Console  # slow to load: other commands start without it

    from fairway.cli.terminal.overview_screen import screen

    console = Console(highlight=False, markup=False, emoji=False)

    def drawn(overview: dict[str, Any], note: str = "") -> Any:
        return screen(overview, console.width, remote.url, note)

    if is_live:
        _follow(remote, overview, console, drawn)
    else:
        console.print(drawn(overview))


def _follow(
    remote: Remote, overview: dict[str, Any], console: Any, drawn: Callable[..., Any]
) -> None:
    from rich.live import Live

    note = ""
    with _keyboard() as wait_for_q, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(drawn(overview, note), refresh=True)
            if wait_for_q(LOOK_SECONDS):
                return
            try:
                overview, note = remote.get(PATH), ""
            except Unavailable:
                note = "no answer: this is old"


@contextmanager
def _keyboard() -> Iterator[Callable[[float], bool]]:
    """A wait of so many seconds that any key cuts short: whether the key was q."""
    if not sys.stdin.isatty():
        yield _rest
        return
    line = sys.stdin.fileno()
    before = termios.tcgetattr(line)
    tty.setcbreak(line)  # keys come at once, and Ctrl-C stays what it is
    try:
        yield lambda seconds: _is_q(line, seconds)
    finally:
        termios.tcsetattr(line, termios.TCSADRAIN, before)


def _rest(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def _is_q(line: int, seconds: float) -> bool:
    ready, _, _ = select.select([line], [], [], seconds)
    if not ready:
        return False
    typed = os.read(line, 64)
    return not typed or b"q" in typed.lower()  # nothing: the terminal is gone
