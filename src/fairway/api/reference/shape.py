"""The shape of the table of operations: plain values, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec import Struct

KeyScope = Literal["tenant", "worker", "operator"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """Something besides the body that a request may carry."""

    name: str
    place: Literal["path", "query", "header"]
    about: str
    example: str
    schema: dict[str, Any] = field(default_factory=lambda: {"type": "string"})
    shell: str = ""  # what a shell example puts in its place; parameters without it stay out


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyHeader:
    name: str
    about: str
    example: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One good answer: a message of the wire, other JSON, a text, or nothing."""

    status: int
    about: str
    kind: type[Struct] | None = None
    schema: dict[str, Any] | None = None  # of JSON that is no message of ours
    media: str = "application/json"
    headers: tuple[ReplyHeader, ...] = ()
    example: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    name: str  # the operationId
    method: str
    path: str
    summary: str
    about: str  # paragraphs, with `code` in back-quotes
    key: KeyScope | None = None
    other_keys: tuple[KeyScope, ...] = ()  # that are taken as well, where they mean something
    parameters: tuple[Parameter, ...] = ()
    body: type[Struct] | None = None
    body_example: Any = None
    replies: tuple[Reply, ...]
    problems: tuple[str, ...] = ()  # codes; those of the key and of chance are added for all


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Operations that belong together, under one heading."""

    name: str
    about: str
    operations: tuple[Operation, ...]
