"""What a name may be made of, in words: nobody should have to read a pattern to mend a request."""

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


def in_words(message: str) -> str:
    """What the codec said, with its pattern put into words."""

    def said(found: re.Match[str]) -> str:
        words = _BY_REPR.get(found[0])
        return "This text is not of the form it must have." if words is None else _must(words)

    return _REGEX.sub(said, message)


def _must(words: str) -> str:
    return f"This must have {words}."
