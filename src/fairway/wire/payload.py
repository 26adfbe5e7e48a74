"""Looks at a payload once, at the edge, so that nothing behind it has to.

Refused: what is not an object, duplicate keys, NUL and lone surrogates, numbers that do not fit
64 bits, nesting deeper than 64. The quick way: text that a strict codec reproduces to the byte,
white space apart, has none of these but NUL, depth and long numbers, which a count and a search
rule out. Everything else takes the careful way, which names the place by JSON pointer. A text that
comes in pieces, or is too long to be looked at in one go, goes by `payload_scan.py`.

What workers say of their runs is looked at by the same rule: whoever reads a job reads its result
and its progress, too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn, TypeAlias

import msgspec

from fairway.core.errors import InvalidRequest

DEPTH_MAX = 64
INTEGER_MAX = 1 << 63
DIGITS_MAX = 20  # of the longest integer that fits, its sign included

_DIGITS = bytes(48 if 48 <= byte <= 57 else 32 for byte in range(256))
_LONG_NUMBER = b"0" * 19  # the shortest run of digits that might not fit

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def is_plain(text: bytes) -> bool:
    """The quick way: True when this JSON holds nothing that must be refused."""
    return brackets(text) <= DEPTH_MAX and is_strict(text)


def is_strict(text: bytes) -> bool:
    """All of the quick way but the depth, so that a batch can be looked at in one go."""
    if b"\\u" in text:
        return False
    try:
        again = _encode(_decode(text))
        is_same = again == text or again == msgspec.json.format(text, indent=-1)
        return is_same and _LONG_NUMBER not in text.translate(_DIGITS)
    except (ValueError, RecursionError):  # the codec's own errors are ValueErrors
        return False


def are_plain(texts: Sequence[bytes]) -> bool:
    """The quick way for many JSON values in one go; each must be one already."""
    if not is_strict(b"[%b]" % b",".join(texts)):
        return False
    return all(len(text) <= DEPTH_MAX or brackets(text) <= DEPTH_MAX for text in texts)


def brackets(text: bytes) -> int:
    """No text nests deeper than the number of its opening brackets."""
    return text.count(b"{") + text.count(b"[")


def check_payload(text: bytes, bytes_max: int, field: str = "/payload") -> None:
    """Refuse what is too large or no object; what is inside is looked at with the job around it."""
    if len(text) > bytes_max:
        raise InvalidRequest(
            f"The payload has {len(text)} bytes; at most {bytes_max} are taken. Put it"
            " where POST /v1/uploads says, and send payload_upload in its place.",
            code="PAYLOAD_TOO_LARGE",
            field=field,
        )
    if not text.lstrip().startswith(b"{"):
        _refuse("The payload must be a JSON object: the arguments by name.", field)


def flaw_in(text: bytes) -> str | None:
    """What is wrong with any JSON value, in a sentence that names the place; None: nothing."""
    if is_plain(text):
        return None
    try:
        check_carefully(text)
    except InvalidRequest as error:
        return f"{error.message} (at {error.field})" if error.field else error.message
    return None


def check_carefully(text: bytes, field: str = "") -> None:
    """The slow way, which can say what is wrong and where."""
    try:
        value = json.loads(
            text.decode("utf-8"),
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=lambda name: _Flaw(f"{name} is not a JSON number."),
        )
    except RecursionError:
        _refuse(TOO_DEEP, field)
    except ValueError as error:
        raise InvalidRequest(f"Not valid JSON: {error}", code="INVALID_JSON", field=field) from None
    _look(value, (None, field), DEPTH_MAX)


TOO_DEEP = f"The JSON is nested deeper than {DEPTH_MAX} levels."
TWICE = "This key stands twice in one object."
NOT_64_BITS = "An integer does not fit 64 bits; send it as a string."
NOT_A_DOUBLE = "A number is too large for a double; send it as a string."
HOLDS_NUL = "A string holds the NUL character, which cannot be stored."
HALF_A_CHARACTER = "A string holds a lone surrogate, which is not text."


class _Flaw(NamedTuple):
    """Stands in a parsed value where something must be refused, until its place is known."""

    message: str
    key: str | None = None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Flaw:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
    return _Flaw(TWICE, twice)


def _integer(digits: str) -> int | _Flaw:
    return int(digits) if is_integer(digits) else _Flaw(NOT_64_BITS)


def _float(digits: str) -> float | _Flaw:
    return float(digits) if is_double(digits) else _Flaw(NOT_A_DOUBLE)


def is_integer(digits: str) -> bool:
    """Whether 64 bits hold it, with a sign or without."""
    return len(digits) <= DIGITS_MAX and -INTEGER_MAX <= int(digits) < 2 * INTEGER_MAX


def is_double(digits: str) -> bool:
    return float(digits) not in (float("inf"), float("-inf"))


Place: TypeAlias = "tuple[Place | None, str | int]"  # the way down, told only when it is needed


def _look(value: Any, place: Place, depth_left: int) -> None:
    """Walk a parsed value and refuse the first thing wrong, by its place."""
    if isinstance(value, str):
        _look_at_text(value, place)
    elif isinstance(value, _Flaw):
        _refuse(value.message, _pointer(place if value.key is None else (place, value.key)))
    elif isinstance(value, dict | list):
        if depth_left == 0:
            _refuse(TOO_DEEP, _pointer(place))
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(key, str):
                _look_at_text(key, place)
            _look(inner, (place, key), depth_left - 1)


def _look_at_text(text: str, place: Place) -> None:
    if "\x00" in text:
        _refuse(HOLDS_NUL, _pointer(place))
    try:
        text.encode()
    except UnicodeEncodeError:
        _refuse(HALF_A_CHARACTER, _pointer(place))


def _pointer(place: Place) -> str:
    """RFC 6901, cut short: a client's own keys must not fill our reply or leave it as no text."""
    outer, key = place
    if outer is None:
        return str(key)
    name = str(key).encode(errors="replace").decode().replace("~", "~0").replace("/", "~1")
    return f"{_pointer(outer)}/{name}"[:POINTER_MAX]


POINTER_MAX = 512


def _refuse(message: str, field: str) -> NoReturn:
    raise InvalidRequest(message, field=field)
