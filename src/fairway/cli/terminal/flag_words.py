"""A server's refusal in the words of the command line.

It names the flag that the person typed, not the field that the program sent."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fairway.core.errors import FairwayError
from fairway.wire.problems import naming_its_field

#: Fields that a flag has a shorter name for.
_SHORT = {
    "Fairway-Tenant": "tenant",
    "delay_seconds": "delay",
    "execute_at": "at",
    "q": "search",
    "types": "type",
    "pools": "pool",
    "wait_seconds": "wait",
}
_SWITCH = re.compile(r"\b([a-z][a-z_]*)=true\b")


def typed_flags(words: Iterable[str]) -> set[str]:
    """`--type=a` and `--type a` alike."""
    return {word.partition("=")[0] for word in words if word.startswith("--")}


def in_flags(error: FairwayError, typed: set[str]) -> FairwayError:
    """The same refusal; of a field that no flag was typed for, it names the field."""
    message = _SWITCH.sub(lambda found: _flag(found[1]), error.message)
    name = error.field.rpartition("/")[2]
    flags = {_flag(name), _flag(_SHORT.get(name, name))} & typed if name else set()
    for flag in flags:
        if message.startswith(f"{name} "):
            message = flag + message.removeprefix(name)
        elif flag not in message:
            message = f"{flag}: {message}"
    error.message, error.args = message, (message,)
    return error if flags else naming_its_field(error)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
