"""The stack of an error, as its job shows it: the handler's own frames, and no path of a machine.

Whoever submitted a job sees its error, and need not be who runs its worker: how the platform came
to call the handler, and where that machine keeps its programs, are no business of theirs. A file is
named as it is imported, so the same failure looks the same on every worker.
"""

from __future__ import annotations

import os
import sys
import traceback
from functools import lru_cache

NOTES_MAX = 20
FILES_REMEMBERED = 1000

_FAIRWAY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_LIBRARY = os.path.dirname(os.__file__)
#: Folders of what stands between the platform and a handler.
_CALLERS = tuple(
    os.path.join(folder, "")
    for folder in (
        _FAIRWAY,
        os.path.join(_LIBRARY, "asyncio"),
        os.path.join(_LIBRARY, "concurrent", "futures"),
    )
)


def stack_of(error: BaseException, message_characters_max: int) -> str:
    """As Python prints it, but for messages of megabytes: to lay those out would take long."""
    whole = traceback.TracebackException.from_exception(error, compact=True)
    found = [whole]
    for one in found:  # it grows while we go through it
        # Python has no other name for what it will print.
        one._str = one._str[:message_characters_max]  # type: ignore[attr-defined]
        if isinstance(one.__notes__, list):
            notes = one.__notes__[:NOTES_MAX]
            one.__notes__ = [str(note)[:message_characters_max] for note in notes]
        _show_places(one)
        found += [link for link in (one.__cause__, one.__context__) if link is not None]
        found += one.exceptions or ()
    return "".join(whole.format())


def _show_places(one: traceback.TracebackException) -> None:
    """Lines of source were read before: a file may be called something else from here on."""
    _leave_out_callers(one.stack)
    for frame in one.stack:
        frame.filename = place_of(frame.filename)
    if isinstance(getattr(one, "filename", None), str):  # of a SyntaxError
        one.filename = place_of(str(one.filename))


def _leave_out_callers(stack: traceback.StackSummary) -> None:
    """Those before the handler; when there is nothing but them, the last one tells where it was."""
    own = (at for at, frame in enumerate(stack) if not frame.filename.startswith(_CALLERS))
    del stack[: next(own, max(0, len(stack) - 1))]


@lru_cache(maxsize=FILES_REMEMBERED)
def place_of(path: str) -> str:
    """A file as programs import it: below a folder of `sys.path`, and without that folder."""
    if path.startswith("<"):  # no file: `<string>`, `<frozen importlib._bootstrap>`
        return path
    folders = (os.path.join(os.path.abspath(str(folder)), "") for folder in sys.path)
    found = [folder for folder in folders if folder != os.sep and path.startswith(folder)]
    return path[len(max(found, key=len)) :] if found else os.path.basename(path)
