"""Commands that ask a running server: where it is, which key to show, and what its refusals say.

Keys come from the environment, else from the `client.json` that `fairway up` left in this folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import httpx2
import msgspec
from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from fairway.cli.local_keys import FILE_NAME, LocalKeys, read_keys
from fairway.core.errors import InvalidRequest, Unavailable
from fairway.sdk.client.settings import DEFAULT_URL, checked_url
from fairway.wire.problems import error_of, naming_its_field

Json: TypeAlias = Annotated[bool, Parameter(help="Print the server's JSON.")]
Role = Literal["tenant", "operator"]

VARIABLES: dict[Role, str] = {"tenant": "FAIRWAY_API_KEY", "operator": "FAIRWAY_OPERATOR_KEY"}

#: As wide as need be where nobody looks: a pipe that cuts states and ids off finds nothing.
PIPE_COLUMNS = 10_000


def _screen() -> Console:
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_COLUMNS
    return console


screen = _screen()


def table(names: Sequence[str], rows: Iterable[Iterable[str]]) -> Table:
    """For a list. Ids are never broken; what else does not fit goes on in the next line, whole."""
    made = Table(box=None, pad_edge=False)
    for name in names:
        made.add_column(name, no_wrap=name == "id", overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made


def show_list(found: Any, lines: Table, if_none: str, *, json: bool) -> None:
    """What the server said, as a table or as JSON."""
    if json:
        show_json(found)
    else:
        screen.print(lines if lines.row_count else if_none)


class Remote:
    """One server, spoken to with one key."""

    def __init__(self, role: Role) -> None:
        keys = read_keys(Path(os.environ.get("FAIRWAY_DATA_DIR") or ".fairway") / FILE_NAME)
        self.url = _checked(os.environ.get("FAIRWAY_URL") or (keys.url if keys else DEFAULT_URL))
        self.api_key = _key(role, keys)
        self._headers = {"authorization": f"Bearer {self.api_key}"}

    def get(self, path: str, **query: Any) -> Any:
        return self.call("GET", path, query=query)

    def call(
        self, method: str, path: str, body: Any = None, query: dict[str, Any] | None = None
    ) -> Any:
        """The reply's JSON; a problem becomes an error with the server's own words."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        try:
            reply = httpx2.request(
                method,
                self.url + path,
                params=given,
                json=body,
                headers=self._headers,
                timeout=30,
                trust_env=False,
            )
        except httpx2.HTTPError as error:
            raise Unavailable(f"No server answers at {self.url}: {error}") from error
        except UnicodeEncodeError:
            raise InvalidRequest("The key has characters that no key has; copy it anew.") from None
        if reply.status_code >= 400:
            problem = _json(reply.content) or {"status": reply.status_code}
            raise naming_its_field(error_of(problem))
        return _json(reply.content)


def _checked(url: str) -> str:
    try:
        return checked_url(url)
    except ValueError as error:
        raise InvalidRequest(f"{error}.") from None


def _json(content: bytes) -> Any:
    try:
        return msgspec.json.decode(content) if content else None
    except msgspec.DecodeError:
        return None


def _key(role: Role, keys: LocalKeys | None) -> str:
    local = {"tenant": keys.api_key, "operator": keys.operator_key} if keys else {}
    key = os.environ.get(VARIABLES[role]) or local.get(role)
    if not key:
        raise InvalidRequest(
            f"No {role}'s key: set {VARIABLES[role]}, or run this where `fairway up` was started."
        )
    return key


def show_json(value: Any) -> None:
    screen.print_json(msgspec.json.encode(value).decode())
