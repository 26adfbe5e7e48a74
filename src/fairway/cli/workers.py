"""`fairway worker ls` and `drain`: what an operator asks about workers, and of them."""

from __future__ import annotations

from urllib.parse import quote

from fairway.cli.remote import Remote, screen, table


def ls() -> None:
    """List the workers that the platform hears. Needs the operator's key."""
    names = ("name", "life", "running / slots", "draining", "silent", "limits are held by")
    rows = [
        (
            one["name"],
            one["life"],
            ", ".join(f"{p} {one['running'].get(p, 0)}/{n}" for p, n in one["slots"].items()),
            "yes" if one["draining"] else "",
            f"{one['silent_seconds']:.1f} s",
            "; ".join(f"{limit}: {means}" for limit, means in one["limits"].items()),
        )
        for one in Remote("operator").get("/v1/workers")["workers"]
    ]
    screen.print(table(names, rows))


def drain(name: str) -> None:
    """Ask a worker to hand back or finish what it runs, and to end. Needs the operator's key.

    Parameters
    ----------
    name
        The worker's name, or one life of it, as `fairway worker ls` shows it.
    """
    asked = Remote("operator").call("POST", f"/v1/workers/{quote(name, safe='')}/drain")
    for one in asked["workers"]:
        running = sum(one["running"].values())
        screen.print(f"{one['name']} ({one['life']}) was asked to drain; it runs {running} jobs.")
