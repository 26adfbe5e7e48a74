"""Why a run failed, as its worker told it: read with patience, kept within bounds.

Workers in any language report an error as JSON `{type, message, stack, dependency}`. Whatever
comes is made into a `Fault` of bounded size; nothing a worker says can make this raise. It judges
nothing: the class of a failure is reported beside it.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from fairway.core.run.outcome import FailureClass

NAME_CHARACTERS_MAX = 200
MESSAGE_CHARACTERS_MAX = 2_000
STACK_CHARACTERS_MAX = 8_000
ERROR_BYTES_MAX = 512 << 10  # as JSON; of a longer one only the beginning is looked at


class Fault(NamedTuple):
    type: str = ""
    message: str = ""
    stack: str = ""  # the end of it: that is where it happened
    dependency: str = ""


NO_FAULT = Fault()


def fault_of(error: bytes | None) -> Fault:
    """What a worker said of a failure."""
    if error is None:
        return NO_FAULT
    if len(error) > ERROR_BYTES_MAX:
        return Fault(message=_text(error[:MESSAGE_CHARACTERS_MAX].decode(errors="replace")))
    try:
        said: Any = json.loads(error)
    except (ValueError, RecursionError):
        said = error.decode(errors="replace")
    if not isinstance(said, dict):
        return NO_FAULT if said is None else Fault(message=_text(said)[:MESSAGE_CHARACTERS_MAX])
    return Fault(
        _text(said.get("type"))[:NAME_CHARACTERS_MAX],
        _text(said.get("message"))[:MESSAGE_CHARACTERS_MAX],
        _text(said.get("stack"))[-STACK_CHARACTERS_MAX:],
        _text(said.get("dependency"))[:NAME_CHARACTERS_MAX],
    )


def _text(value: Any) -> str:
    """Text that can be written down: JSON may carry halves of characters, a store may not."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else _dumped(value)
    return text.replace("\x00", "�").encode(errors="replace").decode()


def _dumped(value: Any) -> str:
    """JSON text of what was no text; nested as deep as reading allows, writing may not."""
    try:
        return json.dumps(value)
    except RecursionError:
        return "(nested too deep to show)"


def error_document(failure: FailureClass | None, reason: str, fault: Fault) -> bytes:
    """The error that a job shows: its class, what was decided because of it, and the fault."""
    facts = {"failure": failure.value if failure else "", "reason": reason, **fault._asdict()}
    told = {name: text for name, text in facts.items() if text}
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()
