"""The figures of .ci/house.py, on code whose figures are known."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / ".ci" / "house.py"

FILES = {
    "rsr/__init__.py": "from rsr.shapes import area\n",
    "rsr/shapes.py": """\
class Shape:
    pass


def area():
    return _side() ** 2


def _side():
    return 2
""",
    "rsr/learned/__init__.py": "from rsr.learned.shapes import forgotten\n",
    "rsr/learned/shapes.py": '''\
"""Docstrings are no comments."""

from rsr.shapes import area


class Shape:
    def __repr__(self):
        return "a shape"

    def used(self):
        return area()  # a comment

    def unused(self):
        return 1

    def shown_to_users(self):
        return 3


def forgotten():
    """Call itself, which does not count."""
    return forgotten()


def named_by_text():
    return Shape().used()
''',
    "tasks/steps.py": 'STEPS = {"run": "rsr.learned.shapes:named_by_text"}\n',
    "flows/loop.py": "from tasks.steps import STEPS\n\nprint(STEPS)\n",
    "docs/shapes.md": "Shapes\n\n    from rsr.learned.shapes import Shape\n\n    Shape().shown_to_users()\n",
    "tests/test_shapes.py": "from rsr.learned.shapes import Shape\n\nShape().unused()\n",
}


def test_figures_of_known_code(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    command = [sys.executable, SCRIPT, "--root", tmp_path, "--json", tmp_path / "figures.json", "--list"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["files"] == 4
    assert figures["internal_imports_per_module"] == 3 / 4
    assert figures["class_names_used_twice"] == 1
    assert figures["comments_per_100_lines"] == round(100 / (26 + 1 - 2), 2)
    assert figures["function_lines_median"] == 2
    assert figures["lines_without_caller"] == 2 + 3
    assert "Shape.unused" in printed
    assert "forgotten" in printed
    assert "shown_to_users" not in printed
    assert "named_by_text" not in printed
