"""The one filter grammar: for lists, for actions on many, and for the commands.

Filters are a closed list, each checked before anything is asked of the store. A cursor is a place
in the caller's own list, so a page stays where it was while new jobs come in above it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection, Sequence
from datetime import datetime

from starlette.datastructures import QueryParams

from fairway.api.endpoint import Parameter, query
from fairway.core.errors import InvalidRequest
from fairway.core.failure.fingerprint import from_text
from fairway.core.ids import PoolId, TenantId, TypeId, lowest_id_at
from fairway.core.lifecycle import BY_LABEL
from fairway.core.pools import PoolTable
from fairway.core.unix_time import to_unix_ms
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.registry.type_names import NO_TYPE
from fairway.wire.messages import TAG_PATTERN

PAGE_DEFAULT = 50
PAGE_MAX = 200
HIGHEST_NUMBER = (1 << 63) - 1
HIGHEST_JOB_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff"

#: The filters of lists and of actions on many, as they are told.
FILTERS = (
    query(
        "state",
        f"One or more of {', '.join(BY_LABEL)}, with commas between.",
        "queued,running",
        "queued,running",
    ),
    query("type", "A job type.", "email.send", schema={"type": "string", "minLength": 1}),
    query("pool", "A pool.", "short"),
    query("tag", "A tag that it has.", "nightly"),
    query(
        "since",
        "Submitted at or after this moment, with its zone.",
        "2026-01-31T00:00:00Z",
        schema={"type": "string", "format": "date-time"},
    ),
    query(
        "until",
        "Submitted before this moment, with its zone.",
        "2026-02-01T00:00:00Z",
        schema={"type": "string", "format": "date-time"},
    ),
    query(
        "limit",
        "Jobs in one page.",
        "50",
        "50",
        schema={"type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": PAGE_DEFAULT},
    ),
    query("cursor", "`next_cursor` of the page before. Opaque.", "AZgKXnwbcACAAASisbPU5Q"),
)
_BY_NAME = {parameter.name: parameter for parameter in FILTERS}


def named(*names: str) -> tuple[Parameter, ...]:
    """Some of the filters, in this order."""
    return tuple(_BY_NAME[name] for name in names)


def check_names(given: QueryParams, parameters: Sequence[Parameter]) -> None:
    """Only filters that the endpoint declares, each once."""
    known = [parameter.name for parameter in parameters]
    for name in given:
        if name not in known:
            raise InvalidRequest(
                f"There is no filter {name[:64]!r}; there are {', '.join(known)}.", field=name
            )
        if len(given.getlist(name)) > 1:
            raise InvalidRequest(f"The filter {name} is given more than once.", field=name)


def states(text: str | None) -> list[int] | None:
    if text is None:
        return None
    return sorted({BY_LABEL[name].value for name in words(text, "state", BY_LABEL)})


def words(text: str, field: str, known: Collection[str]) -> list[str]:
    """One or more of those that are known, with commas between."""
    found = text.split(",")
    for one in found:
        if one not in known:
            raise InvalidRequest(
                f"There is no {field} {one[:64]!r}; there are {', '.join(known)}.", field=field
            )
    return found


def pool(name: str | None, pools: PoolTable) -> PoolId | None:
    return None if name is None else pools.named(name, "pool").number


async def job_type(name: str | None, directory: Directory, asker: TenantId) -> TypeId | None:
    """The number of a job type. One that is unknown is no mistake, and hides none of the others."""
    if name == "":  # a variable that was not set, in somebody's shell: it must not mean all of them
        raise InvalidRequest("type is a job type's name; leave it out for all types.", field="type")
    if name is None:
        return None
    found = await directory.find_type(name, asker)
    return NO_TYPE if found is None else found


def tag(text: str | None) -> str | None:
    """Empty is a variable that was not set: it must not mean all of them."""
    if text is not None and not re.match(TAG_PATTERN, text):
        raise InvalidRequest("tag is a word that a job can be tagged with.", field="tag")
    return text


def fingerprint(text: str | None) -> int | None:
    if text is None:
        return None
    number = from_text(text)
    if number is None:
        raise InvalidRequest("A fingerprint is 16 hexadecimal digits.", field="fingerprint")
    return number


def number_below(cursor: str | None) -> int:
    """Where lines have numbers, the newest the highest: those of the next page are below this."""
    if cursor is None:
        return HIGHEST_NUMBER
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise InvalidRequest(
            "The cursor is not one of ours.", code="INVALID_CURSOR", field="cursor"
        )
    return int(cursor)


def limit(text: str | None) -> int:
    if text is None:
        return PAGE_DEFAULT
    if text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= PAGE_MAX:
        return int(text)
    raise InvalidRequest(f"limit is a number from 1 to {PAGE_MAX}.", field="limit")


def moment(text: str | None, field: str, default: str) -> str:
    """A date and time as a bound on ids."""
    if text is None:
        return default
    try:
        found = datetime.fromisoformat(text.replace(" ", "+"))
        if found.tzinfo is None:
            raise ValueError
        return lowest_id_at(max(0, to_unix_ms(found)))
    except (ValueError, OverflowError):
        raise InvalidRequest(
            f"{field} is a time with its zone, such as 2026-01-31T12:00:00Z.", field=field
        ) from None


def cursor_of(last: str) -> str:
    return base64.urlsafe_b64encode(bytes.fromhex(last.replace("-", ""))).decode().rstrip("=")


def place_of(cursor: str) -> str:
    """A cursor is only a place in the caller's own list: a forged one can show nothing more."""
    try:
        digits = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).hex()
    except (binascii.Error, ValueError):
        digits = ""
    place = f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
    if len(digits) != 32 or cursor_of(place) != cursor:  # the decoder overlooks characters
        raise InvalidRequest(
            "The cursor is not one of ours.", code="INVALID_CURSOR", field="cursor"
        )
    return place
