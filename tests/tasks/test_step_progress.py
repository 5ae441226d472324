"""A step's progress in Prefect's pages: a real server, no waiting."""

from __future__ import annotations

import pytest

from rsr_tasks import stages


@pytest.fixture
def reports_at_once(monkeypatch):
    monkeypatch.setattr(stages, "_EVERY_S", 0.0)


@pytest.fixture
def in_a_flow(prefect_server):
    """Run a function as a flow: artifacts belong to a run."""
    from prefect import flow

    return lambda function: flow(function, name="toy")()


def artifact(key: str):
    from prefect.artifacts import Artifact

    return Artifact.get(key)


def test_a_long_step_is_seen_while_it_runs_and_is_full_at_its_end(in_a_flow, reports_at_once):
    seen = []

    def step() -> None:
        with stages.shown("tune 7") as advance:
            advance(0.25, "loss 1.5")
            seen.append(artifact("tune-7"))
            advance(0.75, "")
            seen.append(artifact("tune-7"))

    in_a_flow(step)
    assert (seen[0].type, seen[0].data, seen[0].description) == ("progress", 25.0, "tune 7: loss 1.5")
    assert seen[1].data == 75.0
    assert artifact("tune-7").data == 100.0


def test_a_short_step_costs_the_server_nothing(in_a_flow):
    def step() -> None:
        with stages.shown("tune 8") as advance:
            advance(0.5, "soon done")

    in_a_flow(step)
    assert artifact("tune-8") is None


def test_a_step_that_fails_is_not_shown_as_done(in_a_flow, reports_at_once):
    def step() -> None:
        with stages.shown("tune 9") as advance:
            advance(0.5, "")
            raise RuntimeError("toy")

    with pytest.raises(RuntimeError, match="toy"):
        in_a_flow(step)
    assert artifact("tune-9").data == 50.0
