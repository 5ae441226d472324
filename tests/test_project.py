"""What pyproject.toml, constraints.txt and the documents say of each other and of the code."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINNED_EXTRAS = ("dev", "docs", "hdf5", "rerun", "ros", "s3", "scale")  # as in the Makefile's `constraints`


def pins() -> dict[str, str]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    return {canonical(name): version for name, version in (line.split("==") for line in lines)}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def dependencies() -> list[str]:
    """All that is pinned; the project's own extras, which an extra may name, are among it by themselves."""
    lines = PROJECT["dependencies"] + [
        line for extra in PINNED_EXTRAS for line in PROJECT["optional-dependencies"][extra]
    ]
    return [line for line in lines if Requirement(line).name != PROJECT["name"]]


@pytest.mark.parametrize("text", dependencies())
def test_every_dependency_is_pinned_within_its_range(text):
    requirement = Requirement(text)
    assert requirement.specifier.contains(pins()[canonical(requirement.name)])


def imported_packages() -> set[str]:
    """Top-level names of other people's packages that the code imports."""
    found: set[str] = set()
    for path in (path for room in ("rsr", "tasks", "flows") for path in (ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"rsr", "tasks", "flows"}


def test_what_is_imported_is_declared_and_the_other_way_round():
    declared = {canonical(Requirement(text).name) for text in PROJECT["dependencies"]}
    extras = {
        canonical(Requirement(line).name) for lines in PROJECT["optional-dependencies"].values() for line in lines
    }
    providers = {"rerun": ["rerun-sdk"], **packages_distributions()}  # of extras, which may not be installed
    imported = {name: {canonical(provider) for provider in providers.get(name, [name])} for name in imported_packages()}
    assert not [name for name, distributions in imported.items() if not distributions & (declared | extras)]
    used = {distribution for distributions in imported.values() for distribution in distributions}
    # Prefect would take too new ones of the first two; jax.export needs the third and does not say so.
    for_others = {"fastapi", "sqlalchemy", "flatbuffers"}
    assert declared - used - {"pot", "scikit-learn"} == for_others


def test_constraints_name_no_build_and_no_path():
    assert not [line for line in pins().values() if not re.fullmatch(r"[\w.!]+", line)]


def test_mujoco_and_mjx_are_of_one_version():
    assert pins()["mujoco"] == pins()["mujoco-mjx"]


@pytest.mark.parametrize(
    "document", ["README.md", *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md")))]
)
def test_documents_name_files_that_exist(document):
    named = re.findall(
        r"\b(?:rsr|tasks|flows|tests|docs|benchmarks|deployments)/[a-z_][\w./-]*\w", (ROOT / document).read_text()
    )
    assert named, "the pattern finds nothing: has the document changed its form?"
    environments = re.compile(r"rsr/\w+-v0")  # Gymnasium's ids look like files
    assert not [path for path in named if not (ROOT / path).exists() and not environments.fullmatch(path)]
