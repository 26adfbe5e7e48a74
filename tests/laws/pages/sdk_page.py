"""Makes `docs/SDK.md` from the SDK: `python -m tests.laws.pages.sdk_page` writes it.

Every public name, under a heading of `GROUPS`, with what its docstring says first.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, get_overloads

import fairway
import fairway.sql
import fairway.testing
from fairway.sdk.bulk import BulkWhich
from fairway.sdk.client.enqueue import EnqueueOptions
from fairway.sdk.job import JobOptions
from fairway.sdk.schedule import ScheduleOptions
from fairway.sdk.times import TimeOptions

PUBLIC: ModuleType = fairway  # as a program has it: type checkers read something else
PAGE = Path(__file__).parents[3] / "docs/SDK.md"
MARK = "<!-- From here on made from the code. -->\n"
GROUPS = {
    "Apps and job types": [
        "App", "Job", "Retry", "Exponential", "Limits", "Limit", "Rate", "Unique", "Debounce",
    ],
    "Jobs that were handed in": ["Handle", "JobStatus", "LogLine"],
    "The event log": ["Event", "EventGap"],
    "Flows": ["chain", "group", "Signature", "FlowHandle"],
    "Many jobs at once": ["Bulk"],
    "Webhooks": ["Webhooks", "verify_webhook"],
    "Inside a run": ["CTX", "Ctx"],
    "What a handler may say": [
        "Fail", "DependencyFailed", "Snooze", "Cancel", "HandBack", "SoftTimeLimit",
    ],
    "What hooks get": ["RunFailure", "JobDeath", "Enqueueing"],
}  # fmt: skip
TESTING = [
    "inline", "manual", "drain", "adrain", "clock", "perform", "aperform", "all_enqueued",
    "assert_enqueued", "refute_enqueued", "Enqueued", "Performed", "LogLine", "MemoryDoor",
]  # fmt: skip
SQL = ["enqueue", "aenqueue", "enqueue_many", "aenqueue_many"]
OPTIONS: dict[str, list[tuple[str, Any]]] = {
    "App": [("@app.job(…)", JobOptions), ("@app.schedule(…)", ScheduleOptions)],
    "Job": [("job.options(…)", EnqueueOptions)],
    "Bulk": [("app.bulk.start(…)", BulkWhich)],
}
#: Public for other parts of the house, and of no use to who writes jobs.
INNER = {
    "door", "flow_door", "register", "settings", "client", "codec", "wants_ctx", "attempts_max",
    "decode_arguments", "encode_result", "wanted", "bounds", "pause_ms", "request", "take",
    "request_after", "follow_ups", "take_follow_ups", "ask_to_stop", "note_error", "hear",
    "from_id", "hold", "release", "give_up", "run_inline", "accept",
}  # fmt: skip


def page() -> str:
    found = [(PAGE.read_text("utf-8").partition(MARK)[0] + MARK).rstrip()]
    for title, names in GROUPS.items():
        found.append(f"## {title}")
        found += [part for name in names for part in _parts(fairway, name)]
    found += ["## Errors", *_errors()]
    for module, names in ((fairway.testing, TESTING), (fairway.sql, SQL)):
        found += [f"## {module.__name__}", _first(module).split(" See ")[0]]
        found += [part for name in names for part in _parts(module, name)]
    return "\n\n".join(found) + "\n"


def errors() -> list[str]:
    """Names of what a caller may catch, which no group has."""
    grouped = {name for names in GROUPS.values() for name in names}
    return [name for name in PUBLIC.__all__ if name not in grouped]


def _errors() -> Iterator[str]:
    lines = ["| error | code | is a | |", "|---|---|---|---|"]
    for name in errors():
        kind = getattr(fairway, name)
        code = f"`{kind.code}`" if "code" in vars(kind) else ""
        lines.append(f"| `{name}` | {code} | `{kind.__base__.__name__}` | {_first(kind)} |")
    yield "\n".join(lines)


def _parts(module: ModuleType, name: str) -> Iterator[str]:
    thing = getattr(module, name)
    if inspect.isfunction(thing) and name[1:] in module.__all__:
        return  # told with its twin
    yield f"### {name}"
    if inspect.isclass(thing):
        yield from _class_parts(name, thing)
    else:
        yield from _plain_parts(module, name)
    for title, options in OPTIONS.get(name, []):
        yield "\n".join([f"| `{title}` takes | | |", "|---|---|---|", *_options(options)])


def _class_parts(name: str, kind: type) -> Iterator[str]:
    calls = [f"{name}({_shown(one)})" for one in _signatures(kind)]
    if calls:
        yield "```text\n" + "\n".join(calls) + "\n```"
    yield from _paragraphs(kind)
    yield from _paragraphs(vars(kind).get("__init__"))
    rows = [*_fields(kind), *_methods(kind)]
    if rows:
        yield "\n".join(["| | |", "|---|---|", *rows])


def _plain_parts(module: ModuleType, name: str) -> Iterator[str]:
    thing, twin = getattr(module, name), getattr(module, f"a{name}", None)
    if inspect.isfunction(thing):
        calls = [_call(name, thing), *([] if twin is None else [_call(f"a{name}", twin)])]
        yield "```text\n" + "\n".join(calls) + "\n```"
    yield from _paragraphs(thing)
    yield from _paragraphs(twin)


def _signatures(kind: type) -> Sequence[Any]:
    """None of what is made by the house and never by hand."""
    init = vars(kind).get("__init__")
    is_made_by_hand = (
        issubclass(kind, BaseException) or kind.__name__ in GROUPS["Apps and job types"]
    )
    if init is None or not is_made_by_hand or kind is fairway.Job:
        return []
    return list(get_overloads(init)) or [init]


def _shown(function: Any) -> str:
    """Parameters as they are written, without the first of a method."""
    parts, star = [], False
    for one in inspect.signature(function).parameters.values():
        if one.name == "self":
            continue
        if one.kind is one.KEYWORD_ONLY and not star:
            parts.append("*")
        star = star or one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        stars = "*" * ((one.kind is one.VAR_POSITIONAL) + 2 * (one.kind is one.VAR_KEYWORD))
        note = one.annotation if isinstance(one.annotation, str) else ""
        text = f"{stars}{one.name}: {note}" if note else f"{stars}{one.name}"
        parts.append(text if one.default is one.empty else f"{text} = {_default(one.default)}")
    return ", ".join(parts)


def _default(value: object) -> str:
    if isinstance(value, tuple) and value and all(inspect.isclass(one) for one in value):
        return "(" + "".join(f"{one.__name__}," for one in value) + ")"
    return "{}" if type(value).__name__ == "mappingproxy" else repr(value)


def _call(name: str, function: Any) -> str:
    answer = inspect.signature(function).return_annotation
    returned = f" -> {answer}" if isinstance(answer, str) and answer != "None" else ""
    waits = "await " if inspect.iscoroutinefunction(function) else ""
    return f"{waits}{name}({_shown(function)}){returned}"


def _fields(kind: type) -> Iterator[str]:
    """Of a named tuple, a struct or a dataclass: what can be read."""
    is_value = hasattr(kind, "_fields") or hasattr(kind, "__struct_fields__")
    if not (is_value or hasattr(kind, "__dataclass_fields__")):
        return
    names = getattr(kind, "__struct_fields__", None) or inspect.get_annotations(kind)
    shown = ", ".join(f"`{name}`" for name in names if not name.startswith("_"))
    if kind.__name__ not in ("Signature", "Enqueued"):
        yield f"| has | {shown} |"


def _methods(kind: type) -> Iterator[str]:
    """Those that say what they do, each with its asynchronous twin."""
    public = {n: m for n, m in vars(kind).items() if not n.startswith("_") and n not in INNER}
    for name, member in public.items():
        function = getattr(member, "__func__", member)
        twin = public.get(f"a{name}")
        said = _first(function) or _first(twin)
        if not said or (name.startswith("a") and name[1:] in public):
            continue
        if isinstance(member, property):
            yield f"| `{name}` | {said} |"
        elif inspect.isfunction(function):
            both = f", `await a{name}(…)`" if inspect.iscoroutinefunction(twin) else ""
            both = both or (f", `async for … in a{name}(…)`" if twin else "")
            yield f"| `{_cell(_call(name, function))}`{both} | {_cell(said)} |"


def _options(options: type) -> Iterator[str]:
    """What stands behind each, or above it after `#:`; a parent's first."""
    parents = [TimeOptions] if options is EnqueueOptions else []  # its class no longer knows them
    above: list[str] = []
    for line in "\n".join(map(inspect.getsource, [*parents, options])).splitlines():
        if match := re.match(r"    #: (.*)", line):
            above.append(match[1])
        elif match := re.match(r"    (\w+): ([^#]+?)(?:  # (.*))?$", line):
            said = " ".join(above) or match[3] or ""
            yield f"| `{match[1]}` | `{_cell(match[2])}` | {_cell(said)} |"
            above = []


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _first(thing: Any) -> str:
    """The first paragraph of its own docstring, in one line."""
    return next(_paragraphs(thing), "")


def _paragraphs(thing: Any) -> Iterator[str]:
    text = inspect.cleandoc(getattr(thing, "__doc__", None) or "") if thing is not None else ""
    yield from (" ".join(part.split()) for part in text.split("\n\n") if part)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
