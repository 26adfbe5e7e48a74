"""`fairway jobs logs ID`: what a job said, until now or until it ends."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec
from cyclopts import Parameter

from fairway.cli.remote import MINE, Remote, Whose
from fairway.wire.run_logs import LogLine


def logs(
    id: str,
    *,
    follow: Annotated[bool, Parameter(alias="-f")] = False,
    attempt: int | None = None,
    options: Whose = MINE,
) -> None:
    """What a job said by ctx.log and logging, oldest first.

    Parameters
    ----------
    follow
        Go on until the job has ended.
    attempt
        Only what this try of it said.
    """
    remote, is_text, said = options.tenant(), options.form == "table", False
    for line in (_followed if follow else _kept)(remote, id, attempt):
        said = True
        sys.stdout.write((_text(line) if is_text else msgspec.json.encode(line).decode()) + "\n")
        sys.stdout.flush()
    if is_text and not said:
        sys.stdout.write("No lines.\n")


def _kept(remote: Remote, id: str, attempt: int | None) -> Iterator[LogLine]:
    """What is there by now, page by page."""
    cursor = None
    while True:
        page = remote.get(f"/v1/jobs/{id}/logs", attempt=attempt, cursor=cursor)
        yield from msgspec.convert(page["lines"], list[LogLine])
        cursor = page["next_cursor"]
        if cursor is None:
            return


def _followed(remote: Remote, id: str, attempt: int | None) -> Iterable[LogLine]:
    from fairway.sdk.client.blocking import iterate  # costs as much as the rest of the command

    return iterate(remote.client().logs(id, attempt, follow=True))


def _text(line: LogLine) -> str:
    """For a terminal: what could move its cursor is shown, not done; further lines are indented."""
    at = line.at.astimezone().isoformat(sep=" ", timespec="milliseconds")[:23]
    said = "\n    ".join(_printable(part) for part in line.text.splitlines() or [""])
    return f"{at} {line.level:<8} #{line.attempt} {said}"


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() or one == "\t" else repr(one)[1:-1] for one in text)
