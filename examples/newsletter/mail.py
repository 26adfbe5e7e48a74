"""What the newsletter does apart from jobs. A folder stands for disks and mail servers."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(os.environ.get("NEWSLETTER_FOLDER", ".fairway/newsletter"))


def render(issue: int, reader: str) -> str:
    """Answers the name of the page."""
    page = _file(f"issue {issue} for {reader}")
    page.write_text(f"Dear {reader}, this is issue {issue}.")
    return page.name


def send(issue: int, reader: str) -> None:
    """ConnectionError while the mail server is away; ValueError for what is no address."""
    if "@" not in reader:
        raise ValueError(f"{reader} is no address")
    if _file("away").exists():
        raise ConnectionError("the mail server is away")
    _file(f"sent issue {issue} to {reader}").touch()


def count(beginning: str = "") -> int:
    """How many pages there are whose names begin so."""
    return sum(1 for _ in FOLDER.glob(f"{beginning or 'issue'}*"))


def tell_us(trouble: str) -> None:
    with _file("troubles").open("a") as file:
        file.write(f"{trouble}\n")


def _file(name: str) -> Path:
    FOLDER.mkdir(parents=True, exist_ok=True)
    return FOLDER / name
