"""A wheel has the dashboard in it: one without is refused, with what to do about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

INDEX = "src/fairway/api/dashboard/static/index.html"


class WithDashboard(BuildHookInterface):  # type: ignore[type-arg]  # what hatch finds here
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable" and not (Path(self.root) / INDEX).exists():
            raise SystemExit(
                "The dashboard is not built, and a wheel without it would be half of Fairway."
                " Run `make web`, then build again."
            )
