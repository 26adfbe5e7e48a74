"""Commands that ask a running server: where it is, which key to show, and what its refusals say.

First what the command line says (`--url`, `--key`, `--profile`), then the environment, then the
`client.json` that `fairway up` left in this folder, then the default profile. An address and a key
belong together: the key of a file is shown to the address of that file only. An address of this
folder that is not this machine's is shown no other key: the folder may be somebody else's.

Of several servers (`FAIRWAY_URL` with commas) the next is asked when one gives no answer, and that
is said: one dead server must not look like all. Servers of the next region (after a semicolon) are
asked when none of the one before answers: that is when `fairway region failover` is needed. What an
operator changes in one region alone, such as its shards, is meant for the first, and goes nowhere
else.
"""

from __future__ import annotations

import os
import sys
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple
from urllib.parse import SplitResult, quote, urlencode, urlsplit

import msgspec
from cyclopts import Group, Parameter

from fairway.cli.processes.local_keys import FILE_NAME, LocalKeys, read_keys
from fairway.cli.profiles import Profile, config_path, read_profiles
from fairway.cli.terminal.flag_words import in_flags, typed_flags
from fairway.cli.terminal.output import Output
from fairway.core.errors import InvalidRequest, Unavailable
from fairway.core.keys import ApiKey
from fairway.sdk.http.addresses import (
    DEFAULT_URL,
    both_in,
    checked_regions,
    is_this_machine,
    text_of,
)
from fairway.wire.problems import error_of

if TYPE_CHECKING:
    from fairway.sdk.client.client import Client

Role = Literal["tenant", "operator"]

VARIABLES: dict[Role, str] = {"tenant": "FAIRWAY_API_KEY", "operator": "FAIRWAY_OPERATOR_KEY"}
WHERE = Group("Server", sort_key=9)
ONE_REGION = "This is done in one region alone: to mean another, name a server of it with --url."
WAIT_SECONDS = 30.0
CONNECT_SECONDS = 5.0  # of one among several servers
NO_TENANT_HERE = (
    ". `fairway up` made none here: of several regions the directory alone makes tenants, whose"
    " keys open every region."
)
TENANT_HEADER = "fairway-tenant"  # for whom an operator acts
READING = ("GET", "HEAD")
#: What operators change by any region alike; a budget is in the books of one.
OF_ALL_REGIONS = ("/v1/regions", "/v1/tenants", "/v1/tiers", "/v1/keys", "/session")
SPEND_CAP = "/spend-cap"
UNAUTHENTICATED = 401


@Parameter(name="*")
@dataclass(frozen=True)
class Options(Output):
    """What every command that asks a server takes."""

    url: Annotated[
        str | None, Parameter(group=WHERE, help="Where the server is (default FAIRWAY_URL).")
    ] = None
    key: Annotated[
        str | None,
        Parameter(
            group=WHERE, help="The key to show (default FAIRWAY_API_KEY or FAIRWAY_OPERATOR_KEY)."
        ),
    ] = None
    profile: Annotated[
        str | None,
        Parameter(group=WHERE, help="A platform by name; see `fairway profiles`."),
    ] = None

    def tenant(self) -> Remote:
        return self._remote("tenant")

    def operator(self) -> Remote:
        return self._remote("operator")

    def anybody(self) -> Remote:
        """Without a key: for what everybody may see."""
        return Remote(_checked(self._found("tenant").url), "")

    def has_key(self, role: Role) -> bool:
        return bool(self._found(role).key)

    def _remote(self, role: Role) -> Remote:
        found = self._found(role)
        url = _checked(found.url)  # before its key: none is known for what is no address
        if not found.key:
            others = " and ".join(one.url for one in self._known(role, None) if one.key)
            where = f" for {found.url}" if others else ""
            known = f" There is one for {others}, shown to that address alone." if others else ""
            here = _keys_here()
            has_none = role == "tenant" and here is not None and not here.api_key
            more = NO_TENANT_HERE if has_none else ", or run this where `fairway up` was started."
            raise InvalidRequest(
                f"No {role}'s key{where}: set {VARIABLES[role]} or --key{more}{known}"
            )
        return Remote(url, found.key)

    def _found(self, role: Role) -> Address:
        """The first place that names an address decides; a key may be said apart from it."""
        given = self.key or (None if self.profile else os.environ.get(VARIABLES[role]))
        url = self.url or (None if self.profile else os.environ.get("FAIRWAY_URL"))
        known = [] if url and given else [one for one in self._known(role, given) if one.url]
        if url:
            if given:
                return Address(url, given)
            for one in known:
                if named := both_in(url, one.url):
                    return Address(named, one.key)
            return Address(url, "")
        return next(
            (Address(one.url, given or one.key) for one in known), Address(DEFAULT_URL, given or "")
        )

    def _known(self, role: Role, given: str | None) -> list[Address]:
        """Addresses with their keys: of the profile that was named, or of this folder's platform
        and the default profile."""
        profiles = read_profiles(config_path())
        name = self.profile or os.environ.get("FAIRWAY_PROFILE")
        if name:
            return [_address(profiles.named(name), role)]
        keys = _keys_here()
        is_of_use = keys is not None and (not given or is_this_machine(keys.url))
        here = [Profile(keys.url, keys.api_key, keys.operator_key)] if keys and is_of_use else []
        usual = [profiles.named(profiles.default)] if profiles.default else []
        return [_address(one, role) for one in (*here, *usual)]


@Parameter(name="*")
@dataclass(frozen=True)
class Whose(Options):
    """The same for commands about one tenant's things: an operator says whose."""

    whose: Annotated[
        str | None,
        Parameter(
            name="--tenant",
            group=WHERE,
            help="Whose, with an operator's key (default: your own, with the tenant's key).",
        ),
    ] = None

    def tenant(self) -> Remote:
        if self.whose is None:
            return self._remote("tenant")
        found = self.operator()
        return Remote(found.urls, found.key, acting_for=self.whose)


class Address(NamedTuple):
    url: str
    key: str


def _keys_here() -> LocalKeys | None:
    """What `fairway up` left in this folder."""
    return read_keys(Path(os.environ.get("FAIRWAY_DATA_DIR") or ".fairway") / FILE_NAME)


def _address(profile: Profile, role: Role) -> Address:
    return Address(profile.url, profile.key if role == "tenant" else profile.operator_key)


PLAIN = Options()
MINE = Whose()


class Reply(NamedTuple):
    status: int
    etag: str
    content: bytes


class KnownServer(NamedTuple):
    url: str
    region: int  # which of those that were named; 0 is the first


class Remote:
    """One server of those that were named, spoken to with one key.

    By the standard library: a general client costs more to import than all else that a command
    does.
    """

    def __init__(self, url: str, key: str, acting_for: str | None = None) -> None:
        #: The one that is asked, and who is asked next; those that can be.
        self._places = [
            KnownServer(one, number)
            for number, part in enumerate(url.split(";"))
            for one in part.split(",")
        ]
        self._told: set[str] = set()
        self.key = key
        self._acting_for = acting_for
        self._acting = {} if acting_for is None else {TENANT_HEADER: acting_for}
        parsed = ApiKey.parse(key)
        self.scope = parsed.scope if parsed else ""  # what the key says of itself

    @property
    def url(self) -> str:
        """Who is asked."""
        return self._places[0].url

    @property
    def urls(self) -> str:
        """All that it may ask, as FAIRWAY_URL has them; first who is asked first."""
        regions: dict[int, list[str]] = {}
        for place in self._places:
            regions.setdefault(place.region, []).append(place.url)
        return ";".join(map(",".join, regions.values()))

    def begin_with(self, other: Remote) -> None:
        """Ask first whom another has found to answer; what it said of the others was said."""
        places = {place.url: place for place in self._places}
        if (found := places.get(other.url)) is not None:
            at = self._places.index(found)
            self._places = self._places[at:] + self._places[:at]
            self._told |= other._told

    def client(self) -> Client:
        """The SDK's, for what is followed: it comes back by itself, and costs its import."""
        from fairway.sdk.client.client import Client
        from fairway.sdk.http.settings import ClientSettings

        settings = ClientSettings(
            url=self.urls, api_key=self.key, acting_for=self._acting_for or ""
        )
        return Client(settings, user_agent="fairway-cli")

    def get(self, path: str, **query: Any) -> Any:
        return self.call("GET", path, query=query)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Any:
        """The reply's JSON; a problem becomes an error with the server's own words."""
        return self.read(self.reply(method, path, body, query, headers))

    def read(self, reply: Reply) -> Any:
        if reply.status >= 400:
            problem = _json(reply.content)
            is_ours = isinstance(problem, dict) and "code" in problem
            if not is_ours:
                raise _stranger(self.url, reply)
            if reply.status == UNAUTHENTICATED and self._places[0].region:
                problem["detail"] = f"{self.url}, another region's: {problem.get('detail', '')}"
            raise in_flags(error_of(problem), typed_flags(sys.argv[1:]))
        return _json(reply.content)

    def reply(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Reply:
        if not self.key.isascii():
            raise InvalidRequest("The key has characters that no key has; copy it anew.")
        given = {name: value for name, value in (query or {}).items() if value is not None}
        where = quote(path, safe="/%") + (f"?{urlencode(given)}" if given else "")
        shown = {"authorization": f"Bearer {self.key}"} if self.key else {}
        said = {**shown, **self._acting, **(headers or {})}
        content = None if body is None else msgspec.json.encode(body)
        if content is not None:
            said["content-type"] = "application/json"
        first_alone = self._is_of_one_region(method, path)
        for next_place in (*self._places[1:], None):
            if first_alone and self._places[0].region:
                raise InvalidRequest(f"No server of the first region answered. {ONE_REGION}")
            try:
                return self._exchange(method, where, content, said)
            except (HTTPException, OSError) as error:
                may_be_heard = method not in READING and not isinstance(error, _NotReached)
                if next_place is None or may_be_heard:
                    raise self._no_answer(error) from error
                if first_alone and next_place.region:
                    raise self._no_answer(error, ONE_REGION) from error
                self._go_on(error)
        raise AssertionError("the last place answers or raises")

    def _is_of_one_region(self, method: str, path: str) -> bool:
        """Whether each region would do it for itself alone: an operator means one of them."""
        if method in READING or self.scope != "operator" or self._acting:
            return False
        return not path.startswith(OF_ALL_REGIONS) or path.endswith(SPEND_CAP)

    def _exchange(
        self, method: str, where: str, content: bytes | None, headers: dict[str, str]
    ) -> Reply:
        parts = _split(self.url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        patience = CONNECT_SECONDS if len(self._places) > 1 else WAIT_SECONDS
        connection = kind(parts.hostname or "", parts.port, timeout=patience)
        with closing(connection):
            try:
                connection.connect()
            except OSError as error:
                raise _NotReached(_why(error)) from error
            except UnicodeError as error:  # what no name of a host may hold
                raise InvalidRequest(f"{self.url!r} is no address of a server: {error}.") from None
            connection.sock.settimeout(WAIT_SECONDS)
            try:
                connection.request(method, parts.path + where, content, headers)
            except ValueError as error:  # what no header may hold
                raise InvalidRequest(f"This cannot be sent: {error}.") from None
            reply = connection.getresponse()
            etag = reply.headers.get("etag", "")
            return Reply(reply.status, etag, reply.read())

    def _go_on(self, error: Exception) -> None:
        """To the next server, which is said once of each."""
        left, *others = self._places
        self._places = [*others, left]
        if left.url not in self._told:
            self._told.add(left.url)
            asked = self.url if others[0].region == left.region else f"{self.url}, another region's"
            words = f"No server answers at {left.url}: {_why(error)}. Asking {asked}."
            sys.stderr.write(f"fairway: {words}\n")

    def _no_answer(self, error: Exception, more: str = "") -> Unavailable:
        return Unavailable(f"No server answers at {self.url}: {_why(error)}. {more}".rstrip())

    def pages(self, path: str, name: str, most: int, **query: Any) -> list[dict[str, Any]]:
        """The items of a list over as many pages as it takes, so many at most."""
        found: list[dict[str, Any]] = []
        cursor = None
        while len(found) < most:
            limit = min(most - len(found), 200)
            page = self.get(path, **query, limit=limit, cursor=cursor)
            found += page[name]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        return found[:most]


class _NotReached(OSError):
    """There was no connection: nothing was said that could have been heard."""


def _why(error: Exception) -> str:
    why = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return why.rstrip(".")


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port  # is read here
    except ValueError as error:
        raise InvalidRequest(f"{url!r} is no address of a server: {error}.") from None
    return parts


def _stranger(url: str, reply: Reply) -> Unavailable:
    """Something between us answered, or something else listens there."""
    return Unavailable(
        f"{url} answered {reply.status}, and not as a Fairway does: is the address right, and"
        " does a proxy before it reach a server?"
    )


def _checked(url: str) -> str:
    try:
        return text_of(checked_regions(url))
    except ValueError as error:
        raise InvalidRequest(f"{error}.") from None


def _json(content: bytes) -> Any:
    try:
        return msgspec.json.decode(content) if content else None
    except msgspec.DecodeError:
        return None
