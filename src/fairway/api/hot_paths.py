"""The hot paths: raw ASGI callables, made once, found by hand before Starlette is asked."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple, TypeAlias

from fairway.api.endpoint import Endpoint
from fairway.api.relay import Edge
from fairway.api.routes import ENDPOINTS, NAMED

HOT = [one for one in ENDPOINTS if one.is_hot]
#: Who answers, what is said of it, and what stands in the path in place of its `{…}`.
Found: TypeAlias = tuple[Any, Endpoint, tuple[str, ...]]


class _Pattern(NamedTuple):
    """A path with one `{…}`: at its end, or in the middle."""

    head: str
    tail: str
    call: Any
    endpoint: Endpoint


class HotPaths:
    def __init__(self, edge: Edge) -> None:
        self._exact: dict[tuple[str, str], Found] = {}
        self._patterns: dict[str, list[_Pattern]] = defaultdict(list)
        declared = {(one.method, one.path) for one in HOT}
        for one in HOT:
            call = one.handler(edge)
            methods = {one.method}
            if one.method == "GET" and ("HEAD", one.path) not in declared:
                methods.add("HEAD")
            for method in methods:
                if "{" not in one.path:
                    self._exact[method, one.path] = (call, one, ())
                else:
                    head, _, rest = one.path.partition("{")
                    tail = rest.partition("}")[2]
                    self._patterns[method].append(_Pattern(head, tail, call, one))

    def find(self, method: str, path: str) -> Found | None:
        found = self._exact.get((method, path))
        if found is not None or method not in self._patterns:
            return found
        for head, tail, call, endpoint in self._patterns[method]:
            if not path.startswith(head):
                continue
            if tail:
                if path.endswith(tail):
                    return call, endpoint, (path[len(head) : -len(tail)],)
            elif "/" not in path[len(head) :] and path not in NAMED:
                return call, endpoint, (path[len(head) :],)
        return None
