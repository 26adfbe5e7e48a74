"""The servers of one platform: any of them will do, so a caller goes to the one that answers.

Workers and programs are told them alike, in one text with commas. A server that gives no answer is
left for the next one at once; the one that answered last stays the first to be asked. Pure: no
clock, no network. Threads and event loops may share one.
"""

from __future__ import annotations

DEFAULT_URL = "http://127.0.0.1:8700"


def checked_urls(text: str) -> tuple[str, ...]:
    """Each address once; ValueError now, not "no answer" after all our patience."""
    given = [one for one in text.split(",") if one.strip()] or [text]
    return tuple(dict.fromkeys(_checked(one) for one in given))


def _checked(text: str) -> str:
    url = text.strip().rstrip("/")
    scheme, _, host = url.partition("://")
    if scheme not in ("http", "https") or not host:
        raise ValueError(
            f"{url!r} is no address of a server: write it as in {DEFAULT_URL} (FAIRWAY_URL or url=)"
        )
    return url


class Addresses:
    """Which server is asked next."""

    def __init__(self, text: str) -> None:
        self.all = checked_urls(text)
        self._place = 0

    @property
    def current(self) -> str:
        return self.all[self._place]

    def leave(self, url: str) -> None:
        """It gave no answer. Who was there before us has left it already: that is no news."""
        place = self._place
        if self.all[place] == url:
            self._place = (place + 1) % len(self.all)

    def are_all_tried(self, tries: int) -> bool:
        """After so many tries in a row, each at another one: the next would be a repeat."""
        return tries % len(self.all) == 0

    def rounds(self, tries: int) -> int:
        """How often each was asked, from one; pauses grow by this."""
        return -(-tries // len(self.all))

    def share_seconds(self, seconds: float) -> float:
        """What one of them may take, so that a silent one leaves time for the others."""
        return seconds / len(self.all)

    def __str__(self) -> str:
        return " and ".join(self.all)
