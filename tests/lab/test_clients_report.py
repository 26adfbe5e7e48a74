"""A crowd that ended for want of a generator says nothing of the platform."""

from __future__ import annotations

from fairway.lab.experiments.clients_report import REQUESTS_AIM, CrowdReading, Run, outrun


def run(*behind: str) -> Run:
    good = CrowdReading("poll", 900, 1200.0, 0.01, 0.02, 0, 1.0, 1.0, 0.5, [])
    stopped_by = "the generator could not keep up" if behind else "all clients were there"
    return Run("poll", [good, good._replace(behind=list(behind))], stopped_by, [])


def test_an_aim_that_the_generator_did_not_reach_was_not_missed() -> None:
    (why,) = outrun([run("it fell behind"), run()], REQUESTS_AIM - 1)
    assert why.startswith("GET each second ended because the generator could not keep up;")


def test_an_aim_that_was_reached_before_is_reached() -> None:
    assert outrun([run("it fell behind")], REQUESTS_AIM) == []
