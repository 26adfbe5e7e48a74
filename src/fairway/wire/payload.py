"""Looks at a payload once, at the edge, so that nothing behind it has to.

Refused: what is not an object, duplicate keys, NUL and lone surrogates, numbers that do not fit
64 bits, nesting deeper than 64. The quick way: text that a strict codec reproduces to the byte has
none of these but NUL and depth. Everything else takes the careful way.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

import msgspec

from fairway.core.errors import InvalidRequest

DEPTH_MAX = 64
INTEGER_MAX = 1 << 63

_LONG_NUMBER = re.compile(rb"[0-9]{19}")  # the shortest run of digits that might not fit

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def is_plain(text: bytes) -> bool:
    """The quick way: True when this JSON holds nothing that must be refused."""
    if b"\\u" in text or text.count(b"{") + text.count(b"[") > DEPTH_MAX:
        return False
    try:
        return bool(_encode(_decode(text)) == text) and not _LONG_NUMBER.search(text)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return False


def check_payload(text: bytes, bytes_max: int, field: str = "/payload") -> None:
    """Raise InvalidRequest, naming the field, unless the payload can be accepted."""
    if len(text) > bytes_max:
        raise InvalidRequest(
            f"The payload has {len(text)} bytes; at most {bytes_max} are taken. Put large data"
            " into storage and send a reference.",
            code="PAYLOAD_TOO_LARGE",
            field=field,
        )
    if not text.lstrip().startswith(b"{"):
        _refuse("The payload must be a JSON object: the arguments by name.", field)
    if not is_plain(text):
        check_carefully(text, field)


def check_carefully(text: bytes, field: str = "") -> None:
    """The slow way, which can say what is wrong."""
    try:
        if _depth(text) > DEPTH_MAX:
            _refuse(f"The payload is nested deeper than {DEPTH_MAX} levels.", field)
        value = json.loads(
            text.decode("utf-8"),
            object_pairs_hook=lambda pairs: _object(pairs, field),
            parse_int=lambda digits: _integer(digits, field),
            parse_float=lambda digits: _float(digits, field),
            parse_constant=lambda name: _refuse(f"{name} is not a JSON number.", field),
        )
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InvalidRequest(f"Not valid JSON: {error}", code="INVALID_JSON", field=field) from None
    _check_text(value, field)


def _object(pairs: list[tuple[str, Any]], field: str) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        _refuse(f"The key {twice!r} stands twice in one object.", field)
    return found


def _integer(digits: str, field: str) -> int:
    if len(digits) > 20 or not -INTEGER_MAX <= int(digits) < 2 * INTEGER_MAX:
        _refuse("An integer does not fit 64 bits; send it as a string.", field)
    return int(digits)


def _float(digits: str, field: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        _refuse("A number is too large for a double; send it as a string.", field)
    return value


def _check_text(value: Any, field: str) -> None:
    if isinstance(value, str):
        if "\x00" in value:
            _refuse("A string holds the NUL character, which cannot be stored.", field)
        if any("\ud800" <= character <= "\udfff" for character in value):
            _refuse("A string holds a lone surrogate, which is not text.", field)
    elif isinstance(value, dict):
        for key, inner in value.items():
            _check_text(key, field)
            _check_text(inner, field)
    elif isinstance(value, list):
        for inner in value:
            _check_text(inner, field)


def _depth(text: bytes) -> int:
    """How deep objects and arrays nest, counted without building anything."""
    deepest = depth = 0
    in_string = escaped = False
    for byte in text:
        if in_string:
            in_string = escaped or byte != 0x22
            escaped = byte == 0x5C and not escaped
        elif byte == 0x22:
            in_string = True
        elif byte in b"{[":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"}]":
            depth -= 1
    return deepest


def _refuse(message: str, field: str) -> NoReturn:
    raise InvalidRequest(message, field=field)
