"""Options by name, looked at when the program runs: a type checker is not everybody's.

A misspelt `timeout` would otherwise be a job without a limit, found in production.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection


def refuse_unknown(given: Collection[str], kind: type, where: str) -> None:
    """TypeError for a name that the TypedDict `kind` does not have, as Python's own calls do."""
    # Every TypedDict has them; `type`, which is all one can ask for here, does not.
    known: frozenset[str] = kind.__optional_keys__  # type: ignore[attr-defined]
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}"
            raise TypeError(f"{where} has no option {name!r}; {hint}")
