"""Commands of `rsr gnn` on data: identify a teacher from recordings, let it simulate trajectories."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.table import Table
from tyro.conf import arg

from rsr import progress
from rsr.cli.gnn_learning import evaluate, push, train
from rsr.cli.groups import group
from rsr.cli.screen import hint, say, show
from rsr.errors import ConfigError

if TYPE_CHECKING:
    from rsr.gnn.identification import Identified, Judge

_NAME = Annotated[str, arg(metavar="S")]
_FOLDERS = Annotated[tuple[Path, ...], arg(metavar="DIR [DIR ...]")]
_OTHERS = Annotated[tuple[Path, ...], arg(metavar="DIR [DIR ...]", help_behavior_hint="")]
_DIR = Annotated[Path, arg(metavar="DIR")]
_MAYBE_DIR = Annotated[Path | None, arg(metavar="DIR", help_behavior_hint="")]
_N = Annotated[int, arg(metavar="N")]


def identify(
    scenario: _NAME,
    sessions: _FOLDERS,
    out: _DIR,
    test: _OTHERS = (),
    evaluations: _N = 1000,
    seed: _N = 0,
) -> int:
    """Find the contact parameters with which MuJoCo comes nearest to recorded trajectories, by CMA-ES.

    Args:
        scenario: two_cubes, cube_toss, or any scenario of free bodies.
        sessions: folders of stored sessions, of which all episodes are fitted.
        out: folder for the teacher, and for the recorded trajectories as `rsr gnn train --finetune` reads them.
        test: folders of further sessions, which nothing is fitted to, to judge the teacher by.
        evaluations: how many parameters to try.
        seed: of the search.
    """
    from rsr.cli.recordings import read_sessions
    from rsr.gnn.identification import Judge
    from rsr.gnn.identification import identify as search
    from rsr.gnn.recorded import from_sessions
    from rsr.gnn.teachers import save_teacher
    from rsr.scenarios import load_scenario

    loaded = load_scenario(scenario)
    fitted = Judge(from_sessions(loaded, read_sessions(loaded, sessions)))
    judges = Judge(from_sessions(loaded, read_sessions(loaded, test))) if test else None
    with progress.bar("identify") as advance:
        found = search(fitted, evaluations, seed, advance)
    save_teacher(out, found, fitted.trajectories, loaded.name, seed)
    show(_parameters(found))
    say(f"error on {len(fitted.trajectories)} fitted trajectories: {_fall(found.default_error, found.error)}")
    if judges is not None:
        say(f"error on {len(judges.trajectories)} others: {_judged(judges, found)}")
    if found.jumps:
        hint(f"left out: {found.jumps} frames in which a tag jumped")
    for warning in found.warnings:
        hint(f"warning: {warning}")
    say(str(out))
    return 0


def data(
    out: _DIR,
    teacher: _MAYBE_DIR = None,
    trajectories: _N = 3000,
    cubes: _N = 2,
    frames: _N = 30,
    varied: Annotated[bool, arg(help_behavior_hint="")] = False,
    bowling: Annotated[bool, arg(help_behavior_hint="")] = False,
    seed: _N = 0,
) -> int:
    """Let an identified teacher simulate pushes. Begun again, it goes on where it was stopped.

    Args:
        out: folder for the trajectories.
        teacher: folder of `rsr gnn identify`; without it every push has contacts of its own, drawn, which the network
            is told.
        trajectories: how many.
        cubes: bodies in a scene; with --varied, two to so many.
        frames: of a trajectory, at 60 Hz.
        varied: boxes and prisms of different sizes and masses instead of equal cubes.
        bowling: the first cube is pushed at the others, which stand like bowling pins; for judging.
        seed: equal seeds give equal bytes.
    """
    from rsr.gnn.scaling import Scaling, generate_trajectories
    from rsr.gnn.teachers import load_teacher

    if varied and bowling:
        raise ConfigError(
            got="--varied together with --bowling",
            expected="one of them",
            where="rsr gnn data",
            next_step="Make two folders of data, one of each kind.",
        )
    scaling = Scaling("varied" if varied else "bowling" if bowling else "cubes", cubes, frames)
    contact = None if teacher is None else load_teacher(teacher)
    with progress.bar("data") as advance:
        folder = generate_trajectories(contact, out, trajectories, scaling, seed, advance)
    say(f"{folder}: {trajectories} trajectories")
    return 0


def _parameters(found: Identified) -> Table:
    contact = found.contact
    table = Table(title=f"contact parameters after {found.evaluations:,} evaluations", title_justify="left")
    table.add_column("parameter")
    table.add_column("value")
    table.add_row("mu", f"{contact.mu:.4g}")
    table.add_row("solimp", " ".join(f"{value:.4g}" for value in contact.solimp))
    table.add_row("solref", " ".join(f"{value:.4g}" for value in contact.solref))
    return table


def _judged(judges: Judge, found: Identified) -> str:
    from rsr.scenarios.two_cubes import ContactParameters

    default, identified = judges([ContactParameters(), found.contact]).mean(axis=1).tolist()
    return _fall(default, identified)


def _fall(before: float, after: float) -> str:
    return f"{before:.3g} with MuJoCo's defaults, {after:.3g} with these ({1 - after / before:.0%} less)"


gnn = group(
    "gnn",
    "Learn contact: `gnn identify`, `gnn data`, `gnn train`, `gnn evaluate`, `gnn push`.",
    (identify, data, train, evaluate, push),
)
