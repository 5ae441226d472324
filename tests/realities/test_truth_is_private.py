"""What calibration looks for is hidden from all but the stand-in, these tests, and the benchmark that judges by it."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = ("rsr", "tasks", "flows", "benchmarks", "examples", "deployments")


def imported(file: Path) -> Iterator[str]:
    """Every module a file imports, and every name from one, with dots; relative imports are resolved."""
    package = file.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, (parent, node.module)))
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def importers(module: str) -> set[str]:
    files = [file for folder in CODE for file in (ROOT / folder).rglob("*.py")]
    assert len(files) > 50
    return {str(file.relative_to(ROOT)) for file in files if module in set(imported(file))}


def test_only_the_stand_in_and_judges_of_finished_work_import_the_truth():
    judges = {"benchmarks/exploration.py", "benchmarks/_stand_in_sessions.py"}
    assert importers("rsr.realities._truth") == {"rsr/realities/stand_in.py", *judges}


def test_only_the_pipelines_reach_a_reality():
    """Benchmarks may record on the stand-in; its truth is closed to them as to all others."""
    outside = {name for name in importers("rsr.realities") if not name.startswith(("rsr/realities/", "benchmarks/"))}
    lab = {f"rsr/pipelines/lab/{name}.py" for name in ("arrivals", "deploy", "gap_check")}
    assert outside == {"rsr/pipelines/loop/collect.py", *lab}


def test_the_room_does_not_hand_the_truth_on():
    import rsr.realities

    assert not {"Truth", "draw_truth"} & set(rsr.realities.__all__)
    assert not {"Truth", "draw_truth"} & set(vars(rsr.realities))


def test_a_session_says_nothing_of_it():
    from rsr.common.progress import ignore
    from rsr.realities import CollectionPlan, StandIn
    from rsr.realities._truth import draw_truth
    from tests.push_samples import ScriptedPusher, push_cube

    session = StandIn(push_cube(), 1).collect(ScriptedPusher(), CollectionPlan("session-001", 2, seed=0), ignore)
    told = repr(session.card)
    assert all(f"{value:.3g}" not in told for value in draw_truth(1, push_cube()).parameters.values())
