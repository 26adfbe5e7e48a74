"""What the codec found wrong, in words.

Nobody should have to read a pattern, or know how programs name kinds of values, to mend a request.
"""

from __future__ import annotations

import re

from fairway.wire.billing import PRICED_POOL_PATTERN
from fairway.wire.exchange import HEX_32
from fairway.wire.messages import (
    JOB_TYPE_PATTERN,
    JOB_TYPE_WORDS,
    POOL_PATTERN,
    POOL_WORDS,
    TAG_PATTERN,
)
from fairway.wire.operators.registry import LABEL_PATTERN
from fairway.wire.operators.tenancy import TENANT_NAME_PATTERN

WORDS = {
    JOB_TYPE_PATTERN: JOB_TYPE_WORDS,
    TAG_PATTERN: "up to 64 letters (A-Z, a-z), digits and _ . : / = -"
    " and begin with a letter or digit",
    POOL_PATTERN: POOL_WORDS,  # a tier's name, too
    TENANT_NAME_PATTERN: "up to 63 small letters (a-z), digits and _ . -"
    " and begin with a letter or digit",
    LABEL_PATTERN: "up to 128 letters (A-Z, a-z), digits and _ . : / = -"
    " and begin with a letter or digit",
    PRICED_POOL_PATTERN: f"{POOL_WORDS}; or *, which is every pool",
    HEX_32: "32 digits of 0-9 and a-f, and nothing else",
}

_REGEX = re.compile(r"Expected `str` matching regex '.*'")
_BY_REPR = {f"Expected `str` matching regex {pattern!r}": words for pattern, words in WORDS.items()}


_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "datetime": "a time such as 2026-01-31T12:00:00Z",
    "null": "null",
}
_BOUNDS = {">=": "{} or more", "<=": "at most {}", ">": "more than {}", "<": "less than {}"}
_LENGTHS = {">=": "at least {}", "<=": "at most {}"}

_BOUND = re.compile(r"Expected `(int|float)` (>=|<=|>|<) (-?[0-9.e+]+)")
_LENGTH = re.compile(r"Expected `(str|array|object)` of length (>=|<=) ([0-9]+)")
_KIND = re.compile(r"Expected `([a-z |]+)`, got `([a-z]+)`")
_PLAIN = (
    (re.compile(r"Object missing required field (`[^`]*`)"), r"The field \1 is missing."),
    (re.compile(r"Object contains unknown field (`[^`]*`)"), r"There is no field \1 here."),
    (
        re.compile(r"Invalid RFC3339 encoded datetime"),
        "This is no time; write one such as 2026-01-31T12:00:00Z.",
    ),
)


def in_words(message: str) -> str:
    """What the codec said, for people; what is not known here stays as it is."""
    said = _REGEX.sub(_pattern, message)
    said = _BOUND.sub(_bound, said)
    said = _LENGTH.sub(_length, said)
    said = _KIND.sub(_kind, said)
    for found, words in _PLAIN:
        said = found.sub(words, said)
    return said


def _pattern(found: re.Match[str]) -> str:
    words = _BY_REPR.get(found[0])
    if words is None:
        return "This text is not of the form it must have."
    return f"This must have {words}."


def _bound(found: re.Match[str]) -> str:
    kind, sign, number = found.groups()
    return f"This must be {_KINDS[kind]}, {_BOUNDS[sign].format(number.removesuffix('.0'))}."


def _length(found: re.Match[str]) -> str:
    kind, sign, number = found.groups()
    if (sign, number) == (">=", "1"):
        return "This must not be empty."
    unit = "character" if kind == "str" else "entry"
    many = {"character": "characters", "entry": "entries"}[unit]
    return f"This must have {_LENGTHS[sign].format(number)} {unit if number == '1' else many}."


def _kind(found: re.Match[str]) -> str:
    wanted = [_KINDS.get(one, one) for one in found[1].split(" | ")]
    return f"This must be {' or '.join(wanted)}, not {_KINDS.get(found[2], found[2])}."
