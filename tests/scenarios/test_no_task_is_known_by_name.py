"""The loop's rooms speak of channels, figures and commands: of no arm, block or task that is built in."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

import rsr
from rsr.scenarios.yaml_keys import YAML_KEYS

ROOT = Path(rsr.__file__).parent
ROOMS = ("environments", "policies", "realities", "infogap", "planning", "reports", "pipelines/loop")
OF_STRUCK_BLOCKS = ("strike", "cubes", "collision")
"""Modules of CLASH and of the learned simulator, which are about such bodies."""
WORDS = (
    r"push_?(cube|t)\b", r"pushing", r"fingertip", r"six joints", r"\btip_", r"block_(position|orientation|mass)",
    r"\b(the|a|each) block\b", r"block's", r"joint_setpoint", r"\byaw\b",
)  # fmt: skip
SLICES = re.compile(r"q(?:pos|vel)\[(?:[^\]]*, *)?(?:\d+ *:|: *\d+ *\])")
"""`qpos[7:13]`, `qpos[:, :3]`: what lies where in one model."""


def modules() -> list[Path]:
    """Python files of the loop's rooms, and of the room of scenarios but for what is built in."""
    found = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    found += [path for path in (ROOT / "scenarios").rglob("*.py") if "built_in" not in path.parts]
    return [path for path in sorted(found) if not any(word in str(path.relative_to(ROOT)) for word in OF_STRUCK_BLOCKS)]


def lines_with(pattern: re.Pattern[str], text: str) -> list[str]:
    return [f"{number}: {line.strip()}" for number, line in enumerate(text.splitlines(), 1) if pattern.search(line)]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_word_of_the_pushing_tasks_and_no_place_in_their_state(path):
    text = path.read_text()
    assert lines_with(re.compile("|".join(WORDS), re.IGNORECASE), text) == []
    assert lines_with(SLICES, text) == []


def test_no_name_in_the_code_of_any_room_is_theirs():
    """Nor an import: in `rsr`, tasks and flows, but for their own folder; words in help and examples may name one."""
    pattern = re.compile("|".join(word for word in WORDS if "yaw" not in word), re.IGNORECASE)  # any body has a yaw
    project = ROOT.parent
    files = [path for folder in ("rsr", "tasks", "flows") for path in (project / folder).rglob("*.py")]
    assert len(files) > 300
    found = {
        f"{path.relative_to(project)}: {token.string}"
        for path in files
        if not {"built_in", "clash"} & set(path.parts)  # CLASH has a `pushing` of its own: by strikes
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
        if token.type == tokenize.NAME and pattern.search(token.string)
    }
    assert found == set()


def test_the_words_are_found_where_they_are_at_home():
    """Each of them, so that none of the patterns is vain."""
    built_in = ROOT / "scenarios" / "built_in"
    home = "\n".join(
        path.read_text() for folder in ("pushing", "push_cube", "push_t") for path in (built_in / folder).glob("*")
    )
    home = f"{home}\nsix joints a block's push_cube"
    assert [word for word in WORDS if not re.search(word, home, re.IGNORECASE)] == []
    assert SLICES.search("start.qpos[0, 7:]")
    assert SLICES.search("data.qpos[:3]")
    assert not SLICES.search("starts.qpos[0]")


def test_no_room_asks_for_a_scenario_by_name():
    """A default or a comparison with a built-in name, in code; examples in docstrings may name one."""
    names = {f'"{path.parent.name}"' for path in (ROOT / "scenarios" / "built_in").glob("*/scenario.yaml")}
    names -= {f'"{key}"' for key in YAML_KEYS["task"].known}  # the term `reach`, which the scenario is named after
    for path in modules():
        tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
        asked = {token.string for token in tokens if token.type == tokenize.STRING} & names
        assert not asked, f"{path.relative_to(ROOT)} names {asked}"
