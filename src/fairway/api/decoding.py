"""What the codec found wrong with a body, as an error that names the field by JSON pointer."""

from __future__ import annotations

import re

import msgspec

from fairway.core.errors import InvalidRequest

#: Everything that the codec raises on bytes that are no message of ours.
UNDECODABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)

MESSAGE_MAX = 300  # characters: a client's own text must not come back at full length

_PLACE = re.compile(r" - at `\$(.*)`$")
_INDEX = re.compile(r"\[(\d+)\]")
_ANY_KEY = "[...]"  # the codec does not say which key of a map
_NAMED = re.compile(r"field `([^`]*)`")


def invalid(error: Exception) -> InvalidRequest:
    if isinstance(error, RecursionError):
        return InvalidRequest("The body is nested too deeply.", code="INVALID_JSON")
    if isinstance(error, UnicodeDecodeError):
        return InvalidRequest("The body is not UTF-8 text.", code="INVALID_JSON")
    message = str(error)
    if not isinstance(error, msgspec.ValidationError):
        return InvalidRequest(message[:MESSAGE_MAX], code="INVALID_JSON")
    sentence = _PLACE.sub("", message)[:MESSAGE_MAX]
    return InvalidRequest(sentence, field=_pointer(message)[:MESSAGE_MAX])


def _pointer(message: str) -> str:
    place = _PLACE.search(message)
    pointer = place[1].replace(_ANY_KEY, "") if place else ""
    pointer = _INDEX.sub(r"/\1", pointer).replace(".", "/")
    named = _NAMED.search(message)
    return f"{pointer}/{named[1]}" if named else pointer
