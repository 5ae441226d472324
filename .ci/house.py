"""Measure the code: sizes, ties between modules, comments, and what nobody calls.

`python .ci/house.py --json build/house.json` prints the figures and writes them; `--list` names what they count.
"""

from __future__ import annotations

import argparse
import ast
import json
import statistics
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from callers import Product, uncalled

LIBRARY = "rsr"
# The rooms of numerics, which need comments most.
NUMERICS = ("calibration", "simulators", "learned", "clash", "gnn")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DOCUMENTED = (*_FUNCTIONS, ast.ClassDef, ast.Module)


@dataclass(frozen=True)
class Module:
    """A file of the library."""

    path: Path  # relative to the project
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())


def read(root: Path, folder: str) -> list[Module]:
    """Read all modules below a folder of the project."""
    paths = sorted((root / folder).rglob("*.py"))
    return [Module(path.relative_to(root), text := path.read_text(), ast.parse(text)) for path in paths]


def internal_imports(module: Module) -> int:
    """Count import statements, wherever they stand, that name the library itself."""
    return sum(_imports_library(node) for node in ast.walk(module.tree))


def _imports_library(node: ast.AST) -> int:
    if isinstance(node, ast.ImportFrom):
        return int(node.level > 0 or (node.module or "").partition(".")[0] == LIBRARY)
    if isinstance(node, ast.Import):
        return sum(alias.name.partition(".")[0] == LIBRARY for alias in node.names)
    return 0


def shared_class_names(modules: list[Module]) -> dict[str, list[str]]:
    """List public class names that are defined in more than one module, each with its modules."""
    found: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(module.path))
    return {name: paths for name, paths in sorted(found.items()) if len(paths) > 1}


def function_lengths(modules: list[Module]) -> list[int]:
    """List the lengths of all functions in lines, docstrings included, shortest first."""
    nodes = (node for module in modules for node in ast.walk(module.tree) if isinstance(node, _FUNCTIONS))
    return sorted((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)


def comment_density(modules: list[Module], root: Path) -> float:
    """Count comments in 100 lines. Docstrings are neither comments nor lines here."""
    comments = sum(_comments(root / module.path) for module in modules)
    lines = sum(module.lines - _docstring_lines(module.tree) for module in modules)
    return 100 * comments / max(lines, 1)


def _comments(path: Path) -> int:
    with path.open("rb") as file:
        return sum(token.type == tokenize.COMMENT for token in tokenize.tokenize(file.readline))


def _docstring_lines(tree: ast.Module) -> int:
    nodes = [node for node in ast.walk(tree) if isinstance(node, _DOCUMENTED) and ast.get_docstring(node) is not None]
    return sum((node.body[0].end_lineno or 0) - node.body[0].lineno + 1 for node in nodes)


def figures(root: Path) -> tuple[dict[str, float], Iterator[str]]:
    """Measure the project; returns the figures, and lines that name what they count."""
    modules = read(root, LIBRARY)
    numerics = [module for module in modules if module.path.parts[1] in NUMERICS]
    lengths = function_lengths(modules)
    shared, idle = shared_class_names(modules), uncalled(Product.read(root))
    values = {
        "files": len(modules),
        "median_file_lines": statistics.median(module.lines for module in modules),
        "internal_imports_per_module": round(sum(map(internal_imports, modules)) / len(modules), 2),
        "class_names_used_twice": len(shared),
        "comments_per_100_lines": round(comment_density(numerics, root), 2),
        "function_lines_median": statistics.median(lengths),
        "function_lines_p90": lengths[int(0.9 * len(lengths))],
        "lines_without_caller": sum(definition.lines for definition in idle),
        "lines_rsr": sum(module.lines for module in modules),
    }
    return values, _named(modules, shared, [str(definition) for definition in idle])


def _named(modules: list[Module], shared: dict[str, list[str]], idle: list[str]) -> Iterator[str]:
    yield "\nPublic class names defined in more than one module"
    yield from (f"  {name}: {', '.join(paths)}" for name, paths in shared.items())
    yield "\nWithout a caller"
    yield from (f"  {line}" for line in idle)
    yield "\nMost internal imports"
    most = Counter({str(module.path): internal_imports(module) for module in modules}).most_common(20)
    yield from (f"  {count:3} {path}" for path, count in most)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--list", action="store_true", help="name what the figures count")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1], help="project")
    chosen = parser.parse_args()
    values, named = figures(chosen.root)
    for name, value in values.items():
        print(f"{name:30} {value:>9}")
    if chosen.json:
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        chosen.json.write_text(json.dumps(values, indent=2) + "\n")
    if chosen.list:
        print("\n".join(named))


if __name__ == "__main__":
    main()
