"""What is hidden before anybody but its owner reads it: values of fields whose names say a secret.

A name is taken apart into words (`cardNumber`, `X-Api-Key`), and hidden if it has one of those
below. Rather one too many than one too few: what is hidden is still there for its tenant. In free
text, such as messages of errors, what follows such a name is hidden, and API keys of our own. An
error of PostgreSQL may quote the row it is about, of whatever table: that is hidden, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

#: One word, or several that stand side by side.
FIELDS = (
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "authorization",
    "credential",
    "cookie",
    "api_key",
    "access_key",
    "private_key",
    "signature",
    "otp",
    "pin",
    "card",
    "cvv",
    "cvc",
    "iban",
    "ssn",
)
HIDDEN = "[redacted]"
DEPTH_MAX = 16
_RUN_TOGETHER_MIN = 5  # letters: `accesstoken` ends with one; `discard` must not count as a card
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_OUR_KEY = re.compile(r"\bfw_(tenant|worker|operator)_([0-9a-zA-Z]+)_\w+")
_BEARER = re.compile(r"\b(Bearer|Basic)\s+[^\s\"',;]+", re.IGNORECASE)
_IN_ADDRESS = re.compile(r"(\w://[^\s/:@]*):[^\s/@]+@")
_NAME_AND_SIGN = re.compile(r"(?<![\w-])(?P<name>[A-Za-z_][\w-]{0,63})\\?[\"']?\s{0,4}[=:]\s{0,4}")
#: Up to where a stack goes on: a value in the row may have empty lines.
_QUOTED_ROW = re.compile(r"DETAIL:\s.*?(?=\n\n(?:The above exc|During handl)|\Z)", re.DOTALL)
_VALUE = re.compile(r"\\?\"[^\"]*\"?|\\?'[^']*'?|[^\s,;&\"'{}\[\]()]+")


class Redaction:
    """Which names are hidden: those above and more of your own."""

    def __init__(self, more: Iterable[str] = ()) -> None:
        given = (*FIELDS, *(name for name in more if name.strip()))
        self._phrases = {phrase for name in given if (phrase := _words(name))}
        self._longest = max(map(len, self._phrases))
        self._together = tuple(
            word for word in map("".join, self._phrases) if len(word) >= _RUN_TOGETHER_MIN
        )

    def hides(self, name: str) -> bool:
        """Whether the value of a field of this name is nobody's business."""
        words = _words(name)
        return any(
            words[start:end] in self._phrases
            for start in range(len(words))
            for end in range(start + 1, min(start + self._longest, len(words)) + 1)
        ) or any(word.endswith(self._together) for word in words)

    def of(self, value: Any, depth: int = 0) -> Any:
        """The same value without secrets; a copy, as deep as anybody reads."""
        if depth >= DEPTH_MAX and isinstance(value, dict | list | tuple):
            return HIDDEN
        if isinstance(value, dict):
            return {
                name: HIDDEN if self.hides(str(name)) else self.of(one, depth + 1)
                for name, one in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.of(one, depth + 1) for one in value]
        return self.text(value) if isinstance(value, str) else value

    def text(self, text: str) -> str:
        """A sentence without secrets, as far as it names them."""
        text = _OUR_KEY.sub(rf"fw_\1_\2_{HIDDEN}", text)
        text = _BEARER.sub(rf"\1 {HIDDEN}", text)
        text = _IN_ADDRESS.sub(rf"\1:{HIDDEN}@", text)
        return self._without_named(text)

    def _without_named(self, text: str) -> str:
        """What follows a name is hidden or looked at in its turn: `error: password=…`."""
        parts: list[str] = []
        kept_to = at = 0
        while found := _NAME_AND_SIGN.search(text, at):
            at = found.end()
            value = _VALUE.match(text, at) if self.hides(found["name"]) else None
            if value is not None:
                parts += (text[kept_to:at], HIDDEN)
                kept_to = at = value.end()
        return "".join((*parts, text[kept_to:]))


def without_rows(text: str) -> str:
    """An error of PostgreSQL, or a stack that ends with one, without what it quotes of a row."""
    return _QUOTED_ROW.sub(f"DETAIL: {HIDDEN}", text)


def _words(name: str) -> tuple[str, ...]:
    """Lower-case, in the singular."""
    found = (word.lower() for word in _WORD.findall(name[:200]))
    return tuple(word[:-1] if len(word) > 3 and word.endswith("s") else word for word in found)


USUAL = Redaction()
