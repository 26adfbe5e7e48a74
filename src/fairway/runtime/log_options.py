"""How a program logs: from which level on, and as which kind of lines. Small: runners import it."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, MutableMapping
from typing import Literal, NamedTuple, TypeAlias

from fairway.core.errors import InvalidRequest
from fairway.core.server_processes import ProcessGroup

LevelName: TypeAlias = Literal["debug", "info", "warning", "error"]
FormatName: TypeAlias = Literal["text", "json"]

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
FORMATS = ("text", "json")
LEVEL, FORMAT = "FAIRWAY_LOG_LEVEL", "FAIRWAY_LOG_FORMAT"
REDACTED = "FAIRWAY_REDACTED_FIELDS"


class LogOptions(NamedTuple):
    level: int
    is_json: bool  # else lines for people
    redacted: tuple[str, ...] = ()  # names of fields that are hidden, besides the usual
    server: str = ""  # in every line, where several processes write one log

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> LogOptions:
        """What is not said: from `info` on; for people on a terminal, JSON otherwise."""
        level = _one_of(environment, LEVEL, tuple(LEVELS)) or "info"
        form = _one_of(environment, FORMAT, FORMATS)
        redacted = tuple(filter(None, environment.get(REDACTED, "").split(",")))
        is_json = form == "json" if form else not sys.stderr.isatty()
        group = ProcessGroup.of(environment)
        server = "" if group is None else group.server_name(os.getpid())
        return cls(LEVELS[level], is_json, redacted, server)


def choose(
    environment: MutableMapping[str, str], level: LevelName | None, form: FormatName | None
) -> LogOptions:
    """Flags over the environment, and into it: that is where a program's children look."""
    if level is not None:
        environment[LEVEL] = level
    if form is not None:
        environment[FORMAT] = form
    return LogOptions.of(environment)


def _one_of(environment: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    said = environment.get(name, "").lower()
    if said and said not in choices:
        raise InvalidRequest(f"{name} is {said!r}; choose one of {', '.join(choices)}.")
    return said
