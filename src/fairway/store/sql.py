"""Loads the named statements of `queries/*.sql` into checked values.

A statement is written with `:name` parameters; the driver wants positions, so names are turned
into positions once, at import. This file knows nothing of what any statement means.

A distributed store may need another text, which the connection asks for. How texts are made, for
each of many tables or for such a store, is in `store/statements`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from fairway.core.ids import SHARDS_MAX
from fairway.store.statements.distributed import routed
from fairway.store.statements.templates import bodies_of

_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")
_POSITION = re.compile(r"\$(\d+)")


@dataclass(frozen=True, slots=True)
class Statement:
    name: str
    text: str
    parameters: tuple[str, ...]
    distributed: Statement | None = None  # on a distributed store; None: the same

    def at(self, connection: Any) -> Statement:
        """As it is run on this connection."""
        if self.distributed is not None and getattr(connection, "placement", None):
            return self.distributed
        return self

    def bind(self, **values: Any) -> list[Any]:
        """The values in the order of the statement's positions; a wrong name is a KeyError."""
        return [values[parameter] for parameter in self.parameters]


@lru_cache(maxsize=SHARDS_MAX)
def of_rows(statement: Statement, count: int) -> str:
    """`INSERT … VALUES (…)` with as many rows of values, each bound as the one that is written.

    A distributed store keeps the plan of such a text, and sends it to the rows' node as one
    command; what comes from a SELECT is planned anew each time.
    """
    columns, row = statement.text.split("VALUES ")
    width = len(statement.parameters)
    shifted = [_shifted(row, width * number) for number in range(count)]
    return f"{columns}VALUES {', '.join(shifted)}"


def _shifted(row: str, by: int) -> str:
    """With positions that are so much higher."""
    return _POSITION.sub(lambda found: f"${int(found[1]) + by}", row)


def load(file_name: str) -> dict[str, Statement]:
    """All statements of one file, by name."""
    folder = resources.files("fairway.store").joinpath("queries")
    others = _bodies(folder.joinpath("distributed", file_name))
    return {
        name: _both(name, body, others.get(name) or routed(_plain(body)))
        for name, body in _bodies(folder.joinpath(file_name)).items()
    }


def _bodies(file: Traversable) -> dict[str, str]:
    if not file.is_file():
        return {}
    return bodies_of(file.read_text("utf-8"))


def _both(name: str, body: str, other: str) -> Statement:
    plain, distributed = _compile(name, body), _compile(name, other)
    if plain.text == distributed.text:
        return plain
    return Statement(name, plain.text, plain.parameters, distributed)


def _plain(body: str) -> str:
    return re.sub(r"--[^\n]*", "", body)


def _compile(name: str, body: str) -> Statement:
    parameters: list[str] = []

    def position(found: re.Match[str]) -> str:
        if found[1] not in parameters:
            parameters.append(found[1])
        return f"${parameters.index(found[1]) + 1}"

    return Statement(name, _PARAMETER.sub(position, _plain(body)).strip(), tuple(parameters))
