"""What an endpoint is: its handler, and beside it all that is said of it. Said once, here.

`@Endpoint(...)` stands above a handler. Its route, `Allow`, the keys it takes, `/openapi.json` and
`/docs` come from that; its name is the handler's, its summary and text are the handler's docstring.
A function is given what its parameters name: `request`, `platform`, `tenant`, `principal`, `actor`.
The messages it takes and gives are described by `fairway.wire`. Nothing here answers a request.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import ModuleType
from typing import Any, Literal, TypeAlias, TypeVar

from msgspec import Struct

from fairway.core.keys import Permission

KeyScope: TypeAlias = Literal["tenant", "worker", "operator"]
#: A function of Starlette's request; or a class, made once, of raw ASGI callables: the hot paths.
Handler = TypeVar("Handler")

#: Whatever takes a body may refuse it with these.
OF_EVERY_BODY = (
    "INVALID_JSON",
    "INVALID_REQUEST",
    "PAYLOAD_TOO_LARGE",
    "UNSUPPORTED_MEDIA_TYPE",
    "REQUEST_TIMEOUT",
)
OF_EVERY_KEY = (
    "UNAUTHENTICATED",
    "FORBIDDEN",
    "TENANT_SUSPENDED",
    "TENANT_MOVING",
    "TOO_MANY_WRONG_KEYS",
    "UNAVAILABLE",
)
OF_EVERY_COOKIE = ("CROSS_SITE_REQUEST",)  # that comes with something to change
OF_ACTING = ("NOT_FOUND",)  # for a tenant that there is not


@dataclass(frozen=True, slots=True)
class Parameter:
    """Something besides the body that a request may carry."""

    place: Literal["path", "query", "header"]
    name: str
    about: str
    example: str
    shell: str = ""  # what a shell example puts in its place; parameters without it stay out
    schema: dict[str, Any] = field(default_factory=lambda: {"type": "string"})


@dataclass(frozen=True, slots=True)
class ReplyHeader:
    name: str
    about: str
    example: str


@dataclass(frozen=True, slots=True)
class Reply:
    """One good answer: a message of the wire, other JSON, a text, or nothing."""

    status: int
    about: str
    kind: type[Struct] | None = None
    example: Any = None
    headers: tuple[ReplyHeader, ...] = ()
    schema: dict[str, Any] | None = None  # of JSON that is no message of ours
    media: str = "application/json"


@dataclass(frozen=True)
class Endpoint:
    """A decorator: keeps what it was told, with the handler, and leaves the handler as it is."""

    call: str  # method and path, as people say it: "GET /v1/jobs/{id}"
    keys: tuple[KeyScope, ...] = ()  # one of these is needed; the first is the usual one
    other_keys: tuple[KeyScope, ...] = ()  # none is needed, these mean something
    permission: Permission | Literal[""] = ""  # of the key; left out, the method says which
    parameters: tuple[Parameter, ...] = ()
    body: type[Struct] | None = None
    body_example: Any = None
    reply: Reply | None = None  # the good one
    replies: tuple[Reply, ...] = ()  # all good ones; said where there are several
    messages: tuple[type[Struct], ...] = ()  # that a client sends on a socket
    problems: tuple[str, ...] = ()  # codes; those of all bodies and keys are added
    is_public: bool = True  # else a page for people, or an address that is handed out
    handler: Any = None

    def __post_init__(self) -> None:
        if self.reply is not None:
            object.__setattr__(self, "replies", (self.reply,))
        if not self.permission:
            object.__setattr__(self, "permission", self._usual_permission())

    def __call__(self, handler: Handler) -> Handler:
        _ENDPOINTS.append(replace(self, handler=handler))
        return handler

    @cached_property
    def method(self) -> str:
        return self.call.partition(" ")[0]

    @cached_property
    def path(self) -> str:
        return self.call.partition(" ")[2]

    def _usual_permission(self) -> Permission:
        if self.keys == ("worker",):
            return "worker"
        return "read" if self.method in ("GET", "HEAD") else "operate"

    @property
    def lets_operators_act(self) -> bool:
        """Whether an operator's key opens it by naming a tenant, for which it acts then."""
        return "tenant" in self.keys and "operator" not in self.keys

    @property
    def takes_cookie(self) -> bool:
        """Whether a browser that signed in needs no key here; never where only workers come."""
        return any(scope != "worker" for scope in self.keys)

    @property
    def is_hot(self) -> bool:
        return isinstance(self.handler, type)

    @cached_property
    def name(self) -> str:
        """The operationId: `list_jobs` and `ListJobs` are listJobs."""
        words: str = self.handler.__name__
        camel = re.sub(r"_(\w)", lambda found: found[1].upper(), words)
        return camel[0].lower() + camel[1:]

    @cached_property
    def summary(self) -> str:
        return self._told[0]

    @cached_property
    def about(self) -> str:
        """Paragraphs, with `code` in back-quotes."""
        return "\n\n".join(self._told[1:])

    @cached_property
    def _told(self) -> list[str]:
        """The paragraphs of the docstring, each on one line."""
        text = inspect.getdoc(self.handler) or ""
        return [" ".join(part.split()) for part in text.split("\n\n")]

    @cached_property
    def all_problems(self) -> tuple[str, ...]:
        of_body = OF_EVERY_BODY if self.body is not None else ()
        of_key = OF_EVERY_KEY if self.keys or self.other_keys else ()
        of_act = OF_ACTING if self.lets_operators_act else ()
        is_act = self.takes_cookie and self.method not in ("GET", "HEAD")
        of_cookie = OF_EVERY_COOKIE if is_act else ()
        return (*of_body, *self.problems, *of_key, *of_act, *of_cookie)


_ENDPOINTS: list[Endpoint] = []


def endpoints_of(modules: Sequence[ModuleType]) -> tuple[Endpoint, ...]:
    """What handlers of these modules answer, in the order in which they stand there."""
    return tuple(
        one for module in modules for one in _ENDPOINTS if one.handler.__module__ == module.__name__
    )


def path(
    name: str, about: str, example: str, shell: str = "", schema: dict[str, Any] | None = None
) -> Parameter:
    return Parameter("path", name, about, example, shell or example, schema or {"type": "string"})


def query(
    name: str, about: str, example: str, shell: str = "", schema: dict[str, Any] | None = None
) -> Parameter:
    return Parameter("query", name, about, example, shell, schema or {"type": "string"})
