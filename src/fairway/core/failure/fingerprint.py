"""Failure fingerprints: dead letters that died of the same cause have the same number.

The cause is the job type, the kind of error, its message without what differs from job to job
(numbers, ids, addresses, quoted values), and the innermost frame of its stack without the line. A
fingerprint groups; it proves nothing, and nothing is decided by it.
"""

from __future__ import annotations

import re
from hashlib import blake2b

from fairway.core.failure.fault import Fault
from fairway.core.ids import TypeId

#: From the most particular to the least: an id is not a row of numbers.
_PARTICULARS = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.I), "<id>"),
    (re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+"), "<address>"),
    (re.compile(r"\w+://\S+"), "<url>"),
    (re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`"), "<text>"),
    (re.compile(r"\b0x[0-9a-f]+\b|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b", re.I), "<hex>"),
    (re.compile(r"\d+"), "<n>"),
    (re.compile(r"\s+"), " "),
)
_MESSAGE_CHARACTERS = 400  # what tells causes apart stands at the beginning
#: Stacks come from tenants' code: each line is looked at once, and no pattern tries a text twice.
_PYTHON_FRAME = re.compile(r'File "([^"]+)", line \d+, in (.+)')
_AT = "at "  # JavaScript, Java
_LINE_AND_COLUMN = re.compile(r"(?::\d{1,9}){0,2}\)?\Z")
_FRAME_CHARACTERS = 400


def fingerprint(job_type: TypeId, fault: Fault) -> int:
    """A number of 64 bits, signed as the store keeps it."""
    facts = (str(job_type), fault.type, fault.dependency, normalised(fault.message), frame(fault))
    cause = "\x1f".join(facts)
    return int.from_bytes(blake2b(cause.encode(), digest_size=8).digest(), "big", signed=True)


def normalised(message: str) -> str:
    """A message without what differs from one job to the next."""
    text = message[:_MESSAGE_CHARACTERS]
    for pattern, word in _PARTICULARS:
        text = pattern.sub(word, text)
    return text.strip()


def frame(fault: Fault) -> str:
    """Where it happened: `file:function` of the innermost frame, or nothing."""
    lines = [line.strip() for line in fault.stack.split("\n")]
    for line in reversed(lines):
        found = _PYTHON_FRAME.fullmatch(line)
        if found:
            path, function = found.groups()
            return f"{'/'.join(path.replace(chr(92), '/').split('/')[-2:])}:{function}"
    first = next((line for line in lines if line.startswith(_AT)), "")
    return _LINE_AND_COLUMN.sub("", first[len(_AT) : _FRAME_CHARACTERS], count=1)


def as_text(number: int) -> str:
    """As people see it: 16 hexadecimal digits."""
    return f"{number & (1 << 64) - 1:016x}"


def from_text(text: str) -> int | None:
    if not re.fullmatch(r"[0-9a-f]{16}", text):
        return None
    return int.from_bytes(bytes.fromhex(text), "big", signed=True)
