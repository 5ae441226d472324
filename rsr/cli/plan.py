"""Commands before the next recording: what to record, and how far the simulator is from what was recorded."""

from __future__ import annotations

from rich.markup import escape

import rsr
from rsr.cli.command import (
    Count,
    Folder,
    Folders,
    Name,
    OptionalFile,
    OptionalFolder,
    calibration_of,
    read_sessions,
    say,
    show,
)
from rsr.common import progress, titled_table

_LISTED = 12


def plan(
    scenario: Name,
    sessions: Folders,
    calibration: Folder,
    out: Folder,
    candidates: Count = 32,
    policy: OptionalFolder = None,
    seed: Count = 0,
) -> int:
    """Say what to record next: episodes that are new, and informative about poorly identified parameters.

    Args:
        scenario: a built-in scenario such as push_cube, or the path of a scenario's YAML file.
        sessions: folders of stored sessions, from which the calibration was made.
        calibration: its folder.
        out: folder for plan.json (starts and commands of all candidates) and plan.png (where reality is unknown).
        candidates: how many episodes to consider; a quarter of them repeat recorded ones, to compare with.
        policy: folder of a policy to run from fresh starts, too, where the scenario has a task.
        seed: of everything random.
    """
    settings = rsr.config.parse_config({"seed": seed}, where="command line")
    loaded = rsr.scenarios.load_scenario(scenario)
    calibration_of(loaded, calibration)
    recorded = read_sessions(loaded, sessions)
    actor = None if policy is None else rsr.policies.Policy.load(policy, loaded)
    with progress.bar("plan") as advance:
        made = rsr.planning.make_plan(
            loaded,
            recorded,
            rsr.calibration.load_calibration(calibration),
            candidates=candidates,
            seed=settings.seed,
            policy=actor,
            advance=advance,
        )
    rsr.common.write_json(out / "plan.json", made.document())
    rsr.common.write_bytes(out / "plan.png", rsr.reports.plan_figure(made))
    _show_plan(made)
    say(str(out))
    return 0


def divergence(
    scenario: Name,
    sessions: Folders,
    calibration: OptionalFolder = None,
    transitions: Count = 1000,
    seed: Count = 0,
    json: OptionalFile = None,
) -> int:
    """Measure KL(real || simulated) by every estimator that can be applied, and say which of them to trust.

    Args:
        scenario: a built-in scenario such as push_cube, or the path of a scenario's YAML file.
        sessions: folders of stored sessions.
        calibration: folder of the calibration to simulate with; by default nominal parameters.
        transitions: recorded control steps to compare; keep the number equal where figures are compared.
        seed: of the draw.
        json: also write the figures to this file.
    """
    settings = rsr.config.parse_config({"seed": seed, "infogap": {"transitions": transitions}}, where="command line")
    loaded = rsr.scenarios.load_scenario(scenario)
    fitted = calibration_of(loaded, calibration)
    simulated_as = loaded if fitted is None else rsr.scenarios.structured(loaded, fitted.structure)
    params = loaded.space.nominal if fitted is None else fitted.vector()
    count = settings.infogap.transitions
    pairs = rsr.planning.TransitionPairs(
        simulated_as, read_sessions(loaded, sessions), count, rsr.common.generator(settings.seed, "divergence")
    )
    with rsr.simulators.MujocoSimulator(simulated_as) as simulator:
        simulated = pairs.simulated(simulator, params)
    found = rsr.infogap.diagnose(
        pairs.real, simulated, noise=rsr.planning.ObservedTransitions(loaded).noise(), skew=settings.infogap.skew
    )
    _show_diagnosis(found)
    if json is not None:
        rsr.common.write_json(json, _figures(found))
    return 0


def _figures(found: rsr.infogap.EstimatorChoice) -> dict[str, float | str]:
    each = {f"{estimate.estimator}_nats": estimate.value for estimate in found.estimates}
    floors = {f"{estimate.estimator}_floor_nats": estimate.floor for estimate in found.estimates}
    facts = {"samples": found.samples, "columns": found.columns, "kernel_crowd": found.crowd}
    return {"advised": found.advised, **each, **floors, **facts, "duplicates": found.duplicates}


def _show_diagnosis(found: rsr.infogap.EstimatorChoice) -> None:
    title = f"KL(real || simulated), {found.samples} transitions of {found.columns} columns"
    rows = []
    for each in found.estimates:
        name = f"[bold]{each.estimator}[/]" if each.estimator == found.advised else each.estimator
        rows.append((name, f"{each.value:.4g}", f"{each.floor:.4g}", escape("; ".join(each.warnings))))
    show(titled_table(title, ("estimator", "nats", "of noise alone", "note"), rows, text=(0, 3)))
    say(f"take {found.advised}: {'; '.join(found.reasons)}")


def _show_plan(made: rsr.planning.RecordingPlan) -> None:
    rows = []
    for rank, each in enumerate(made.ranked[:_LISTED], start=1):
        figures = (f"{each.novelty:.2f}", f"{each.weak_nats:.1f}", each.most_informed)
        rows.append((str(rank), each.candidate.name, *figures, escape(each.candidate.description)))
    header = ("", "episode", "new", "nats", "most informed", "what to do")
    show(titled_table(f"the best of {len(made.ranked)} candidates", header, rows, text=(1, 4, 5)))
    say(f"not known well: {', '.join(made.weak)}")
    estimate = made.gap.estimate
    say(f"gap: {estimate.value:.3g} nats by {estimate.estimator}, of which noise alone is {estimate.floor:.3g}")
    names = ", ".join(name for name, _ in made.session)
    say(f"a session of {len(made.session)}: {names}; {made.session[-1][1]:.1f} nats together")
