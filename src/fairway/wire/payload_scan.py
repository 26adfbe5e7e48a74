"""The rule of `payload.py` for a text that comes in pieces: it is never held as a whole.

For uploads, large results and large states. The same things are refused as there; the place is told
by byte. What is held is bounded: the names in the objects that are open, to know them again, and a
piece of what is not whole yet. So is the work: runs of plain values are passed over in one match,
everything else is a step of its own, and steps are counted.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from enum import Enum, auto

from fairway.core.errors import InvalidRequest
from fairway.wire.payload import (
    DEPTH_MAX,
    HALF_A_CHARACTER,
    HOLDS_NUL,
    NOT_64_BITS,
    NOT_A_DOUBLE,
    TOO_DEEP,
    TWICE,
    is_double,
    is_integer,
)

PIECE_BYTES = 64 << 10  # a good length to feed: some milliseconds at most, most often far less
STEPS_MAX = 10_000_000  # some ten seconds of one processor
NAMES_BYTES_MAX = 16 << 20  # of the names in all objects that are open
NAME_BYTES = 100  # what one costs besides its text
TOKEN_BYTES_MAX = 64 << 10  # of a name or a number: it is held until it is whole
ESCAPE_BYTES_MAX = 12  # two halves of one character

# Nothing follows what is repeated: nothing is ever tried twice. And not too often at a time,
# since the engine keeps a note of each.
_SPACE = rb"[ \t\n\r]*"
_TEXT = rb'"[^"\\\x00-\x1f]*"'
_NUMBER = rb"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?"  # so short that it surely fits
_PLAIN = rb"(?:" + _TEXT + rb"|" + _NUMBER + rb"|true|false|null)"

_spaces = re.compile(_SPACE).match
_plain_items = re.compile(rb"(?:" + _SPACE + _PLAIN + _SPACE + rb",){0,500}").match
_member = re.compile(
    rb'"([^"\\\x00-\x1f]*)"' + _SPACE + rb":" + _SPACE + rb"(?:" + _PLAIN + _SPACE + rb"([,}]))?"
).match
_inside = re.compile(
    rb'(?:[^"\\\x00-\x1f]+|\\(?:["\\/bfnrt]|u(?!0000|[dD][89a-fA-F])[0-9a-fA-F]{4}'
    rb"|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})){0,500}"
).match
_numeric = re.compile(rb"[-+.0-9eE]*").match
_number = re.compile(rb"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?").fullmatch
_half = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}").match

_WORDS = (b"true", b"false", b"null")
_QUOTE, _BACKSLASH, _COMMA, _COLON = b'"\\,:'
_BEGINS = {b"{"[0]: b"}"[0], b"["[0]: b"]"[0]}
_SPACES = frozenset(b" \t\n\r")
_NUMERIC = frozenset(b"-0123456789")
_WAIT = -1  # for the next piece


class _Due(Enum):
    """What may come next."""

    VALUE = auto()
    FIRST_ITEM = auto()  # or the end of the list
    ITEM = auto()
    FIRST_NAME = auto()  # or the end of the object
    NAME = auto()
    COLON = auto()
    TEXT = auto()  # the rest of a string
    COMMA = auto()  # or the end of what is open
    NOTHING = auto()


class PayloadScan:
    """Feed it a text piece by piece, then `finish`. InvalidRequest at the first thing wrong."""

    def __init__(self, *, is_object: bool = True) -> None:
        self._is_object = is_object  # else any value will do
        self._due = _Due.VALUE
        self._open: list[set[bytes] | None] = []  # names of the objects we are in; None: a list
        self._names_bytes = 0
        self._rest = b""
        self._passed = 0  # bytes before the rest
        self._steps = 0
        self._is_last = False
        self._check_text = codecs.getincrementaldecoder("utf-8")().decode
        self._step: dict[_Due, Callable[[bytes, int], int]] = {
            _Due.VALUE: self._value,
            _Due.FIRST_ITEM: self._item,
            _Due.ITEM: self._item,
            _Due.FIRST_NAME: self._name,
            _Due.NAME: self._name,
            _Due.COLON: self._colon,
            _Due.TEXT: self._text,
            _Due.COMMA: self._comma,
            _Due.NOTHING: self._nothing,
        }

    def feed(self, piece: bytes) -> None:
        try:
            self._check_text(piece, self._is_last)
        except UnicodeDecodeError:
            raise self._no_json("it is not UTF-8 text", 0) from None
        text = self._rest + piece if self._rest else piece
        at = self._through(text)
        self._passed += at
        self._rest = text[at:]

    def finish(self) -> None:
        self._is_last = True
        self.feed(b"")
        if self._due is not _Due.NOTHING:
            raise self._no_json("it ends too soon", 0)

    def _through(self, text: bytes) -> int:
        """As far as whole tokens go."""
        at, size, steps = 0, len(text), 0
        while at < size:
            if text[at] in _SPACES and self._due is not _Due.TEXT:
                at = _end(_spaces(text, at))
                continue
            steps += 1
            end = self._step[self._due](text, at)
            if end == _WAIT:
                self._may_wait(at, size)
                break
            at = end
        self._steps += steps
        if self._steps > STEPS_MAX:
            raise InvalidRequest(
                "This holds more values than can be looked at. Split it, or put it into a storage"
                " of your own and send where it is.",
                code="TOO_MANY_VALUES",
            )
        return at

    def _may_wait(self, at: int, size: int) -> None:
        if self._is_last:
            raise self._no_json("it ends too soon", at)
        if size - at > TOKEN_BYTES_MAX:
            raise self._refused(f"A key or a number has more than {TOKEN_BYTES_MAX} bytes", at)

    # -- one step for each thing that may come next ------------------------------------------------

    def _item(self, text: bytes, at: int) -> int:
        end = _end(_plain_items(text, at))
        if end > at:
            self._due = _Due.ITEM  # after a comma
            return end
        if text[at] == _BEGINS[b"["[0]] and self._due is _Due.FIRST_ITEM:
            return self._close(at)
        return self._value(text, at)

    def _value(self, text: bytes, at: int) -> int:
        byte = text[at]
        if self._is_object and not self._open and byte != b"{"[0]:
            raise self._refused("The payload must be a JSON object: the arguments by name", at)
        if byte == _QUOTE:
            self._due = _Due.TEXT
            return at + 1
        if byte in _BEGINS:
            if len(self._open) == DEPTH_MAX:
                raise self._refused(TOO_DEEP.rstrip("."), at)
            is_list = byte == b"["[0]
            self._open.append(None if is_list else set())
            self._due = _Due.FIRST_ITEM if is_list else _Due.FIRST_NAME
            return at + 1
        return self._digits(text, at) if byte in _NUMERIC else self._word(text, at)

    def _digits(self, text: bytes, at: int) -> int:
        end = _end(_numeric(text, at))
        if end == len(text) and not self._is_last:
            return _WAIT
        found = _number(text, at, end)
        if found is None or end - at > TOKEN_BYTES_MAX:
            raise self._no_json("this is no number", at)
        digits = found[0].decode()
        if found[1] is None and found[2] is None:
            if not is_integer(digits):
                raise self._refused(NOT_64_BITS.rstrip("."), at)
        elif not is_double(digits):
            raise self._refused(NOT_A_DOUBLE.rstrip("."), at)
        return self._ended(end)

    def _word(self, text: bytes, at: int) -> int:
        for word in _WORDS:
            if text.startswith(word, at):
                return self._ended(at + len(word))
            if word.startswith(text[at : at + len(word)]):
                return _WAIT
        raise self._no_json("a value is missing here", at)

    def _text(self, text: bytes, at: int) -> int:
        end = self._end_of_text(text, at)
        if end == _WAIT:
            return _WAIT
        if end < len(text) and text[end] == _QUOTE:
            return self._ended(end + 1)
        return end  # all there is of it so far

    def _end_of_text(self, text: bytes, at: int) -> int:
        """Where its quote is, or where it cannot be followed any further in this piece."""
        end = at
        while (further := _end(_inside(text, end))) > end:
            end = further
        if end == len(text) or text[end] == _QUOTE:
            return end
        if text[end] == _BACKSLASH:
            if len(text) - end < ESCAPE_BYTES_MAX and not self._is_last:
                return end if end > at else _WAIT
            if text.startswith(b"\\u0000", end):
                raise self._refused(HOLDS_NUL.rstrip("."), end)
            if _half(text, end):
                raise self._refused(HALF_A_CHARACTER.rstrip("."), end)
        raise self._no_json("a string holds a control character or an escape that is none", end)

    def _name(self, text: bytes, at: int) -> int:
        found = _member(text, at)
        if found is not None:
            self._note(found[1], at)
            if found[2] == b"}":
                return self._close(found.end() - 1)
            self._due = _Due.VALUE if found[2] is None else _Due.NAME
            return found.end()
        if text[at] == _BEGINS[b"{"[0]] and self._due is _Due.FIRST_NAME:
            return self._close(at)
        if text[at] != _QUOTE:
            raise self._no_json("a key in quotes is missing here", at)
        end = self._end_of_text(text, at + 1)
        if end in (_WAIT, len(text)) or text[end] != _QUOTE:
            return _WAIT
        name = text[at + 1 : end]
        self._note(json.loads(f'"{name.decode()}"').encode() if b"\\" in name else name, at)
        self._due = _Due.COLON
        return end + 1

    def _colon(self, text: bytes, at: int) -> int:
        if text[at] != _COLON:
            raise self._no_json("a colon is missing here", at)
        self._due = _Due.VALUE
        return at + 1

    def _comma(self, text: bytes, at: int) -> int:
        is_list = self._open[-1] is None
        if text[at] == _COMMA:
            self._due = _Due.ITEM if is_list else _Due.NAME
            return at + 1
        if text[at] != (b"]" if is_list else b"}")[0]:
            raise self._no_json("a comma is missing here, or the end of what is open", at)
        return self._close(at)

    def _nothing(self, text: bytes, at: int) -> int:
        raise self._no_json("something follows its end", at)

    # -- what is open ------------------------------------------------------------------------------

    def _note(self, name: bytes, at: int) -> None:
        names = self._open[-1]
        assert names is not None
        if name in names:
            raise self._refused(TWICE.rstrip("."), at)
        names.add(name)
        self._names_bytes += len(name) + NAME_BYTES
        if self._names_bytes > NAMES_BYTES_MAX:
            raise InvalidRequest(
                "An object holds more keys than can be told apart. Send a list in its place.",
                code="TOO_MANY_VALUES",
            )

    def _close(self, at: int) -> int:
        names = self._open.pop()
        if names:
            self._names_bytes -= sum(map(len, names)) + NAME_BYTES * len(names)
        return self._ended(at + 1)

    def _ended(self, end: int) -> int:
        self._due = _Due.COMMA if self._open else _Due.NOTHING
        return end

    # -- what is wrong -----------------------------------------------------------------------------

    def _no_json(self, what: str, at: int) -> InvalidRequest:
        sentence = f"Not valid JSON: {what} (at byte {self._passed + at})."
        return InvalidRequest(sentence, code="INVALID_JSON")

    def _refused(self, what: str, at: int) -> InvalidRequest:
        return InvalidRequest(f"{what} (at byte {self._passed + at}).")


def in_pieces(text: bytes | memoryview) -> Iterator[bytes]:
    """A text that is here as a whole, to be fed."""
    whole = memoryview(text)
    for start in range(0, len(whole), PIECE_BYTES):
        yield bytes(whole[start : start + PIECE_BYTES])


def _end(match: re.Match[bytes] | None) -> int:
    """Of a pattern that also matches nothing."""
    assert match is not None
    return match.end()
