"""`fairway webhooks` against a real server."""

from __future__ import annotations

from pathlib import Path

from tests.api.house import House
from tests.cli.program import Ended, fairway


def test_a_life_of_webhooks(house: House, tmp_path: Path) -> None:
    _, key = house.new_tenant()

    def say(*words: str) -> Ended:
        return fairway(
            tmp_path, "webhooks", *words, FAIRWAY_URL=house.url, FAIRWAY_API_KEY=key, TZ="UTC"
        )

    made = say("add", "https://93.184.216.34/hook", "--kinds", "circuit.*")
    id_, secret, _ = made.out.splitlines()
    assert secret.startswith("secret: whsec_")
    assert say("change", id_, "--no-enabled").status == 0
    listed = say("ls").out
    assert id_ in listed
    assert "whsec_" not in listed
    rotated = say("rotate", id_, "--overlap", "24h")
    assert rotated.out.startswith("secret: whsec_")
    assert "switched off" in say("test", id_).err
    sent = house.waiting_test(id_)
    (row,) = [line for line in say("deliveries", id_).out.splitlines() if line.startswith(sent)]
    assert row.split()[1:4] + row.split()[-1:] == ["webhook.test", "waiting", "0", "{}"]
    assert "On their way: 0." in say("replay", id_, "--since", "1h").out
    refused = say("add", "https://10.0.0.1/")
    assert (refused.status, "public internet" in refused.err) == (1, True)
