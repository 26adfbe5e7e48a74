"""Loads the named statements of `queries/*.sql` into checked values.

A statement is written with `:name` parameters; the driver wants positions, so names are turned
into positions once, at import. This file knows nothing of what any statement means.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from typing import Any

_HEADER = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")


@dataclass(frozen=True, slots=True)
class Statement:
    name: str
    text: str
    parameters: tuple[str, ...]

    def bind(self, **values: Any) -> list[Any]:
        """The values in the order of the statement's positions; a wrong name is a KeyError."""
        return [values[parameter] for parameter in self.parameters]


def load(file_name: str) -> dict[str, Statement]:
    """All statements of one file, by name."""
    text = resources.files("fairway.store").joinpath("queries", file_name).read_text("utf-8")
    pieces = _HEADER.split(text)[1:]
    return {
        name: _compile(name, body) for name, body in zip(pieces[::2], pieces[1::2], strict=True)
    }


def _compile(name: str, body: str) -> Statement:
    parameters: list[str] = []

    def position(found: re.Match[str]) -> str:
        if found[1] not in parameters:
            parameters.append(found[1])
        return f"${parameters.index(found[1]) + 1}"

    without_comments = re.sub(r"--[^\n]*", "", body)
    return Statement(name, _PARAMETER.sub(position, without_comments).strip(), tuple(parameters))
