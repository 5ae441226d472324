"""Python beside a scenario: loaded from its own folder alone, under a private name; errors say file and line."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from rsr.common.errors import ScenarioError
from rsr.scenarios.python_beside import blamed, load_function


def _folder(tmp_path: Path, **files: str) -> Path:
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def test_a_name_of_a_file_is_loaded_and_files_import_each_other(tmp_path):
    folder = _folder(tmp_path, task="from .helpers import WIDTH\nTASK = WIDTH + 1\n", helpers="WIDTH = 2\n")
    assert load_function(folder, "task.py:TASK") == 3


def test_a_file_in_a_folder_below_is_loaded(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "arm.py").write_text("def build():\n    return 5\n")
    assert load_function(tmp_path, "model/arm.py:build")() == 5


def test_two_folders_with_a_task_each_do_not_collide_and_sys_path_stays(tmp_path):
    before = list(sys.path)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tasks.py").write_text(f"TASK = '{name}'\n")
    assert [load_function(tmp_path / name, "tasks.py:TASK") for name in ("one", "two")] == ["one", "two"]
    assert sys.path == before
    assert "tasks" not in sys.modules


def test_an_edited_file_is_loaded_anew_and_an_unchanged_one_is_the_same_object(tmp_path):
    folder = _folder(tmp_path, task="TASK = object()\n")
    first = load_function(folder, "task.py:TASK")
    assert load_function(folder, "task.py:TASK") is first
    _folder(tmp_path, task="TASK = 'new'\n")
    assert load_function(folder, "task.py:TASK") == "new"


def test_nothing_is_written_into_the_folder(tmp_path):
    folder = _folder(tmp_path, task="from .helpers import A\n", helpers="A = 1\n")
    load_function(folder, "task.py:A")
    assert sorted(path.name for path in folder.iterdir()) == ["helpers.py", "task.py"]


def test_threads_that_load_at_once_get_one_module(tmp_path):
    folder = _folder(tmp_path, task="TASK = object()\n")
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(load_function(folder, "task.py:TASK"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "A = 1\nTASK = 1 / 0\n",
            "scenario.yaml, task: task.py, line 2: got ZeroDivisionError: division by zero; expected Python that runs. "
            "Correct the file there.",
        ),
        (
            "A = 1\n\ndef (:\n",
            "scenario.yaml, task: task.py, line 3: got SyntaxError: invalid syntax (task.py, line 3); expected Python "
            "that runs. Correct the file there.",
        ),
        (
            "import nothing_of_this_name\n",
            "scenario.yaml, task: task.py, line 1: got ModuleNotFoundError: No module named 'nothing_of_this_name'; "
            "expected Python that runs. Correct the file there.",
        ),
        (
            "TASKS = 1\n",
            "scenario.yaml, task: got no 'TASK' in task.py; expected one of TASKS. "
            "Name it so in task.py, or correct the reference to it.",
        ),
    ],
)
def test_what_is_wrong_in_the_file_is_said_with_its_line(tmp_path, text, message):
    with pytest.raises(ScenarioError) as error:
        load_function(_folder(tmp_path, task=text), "task.py:TASK", "scenario.yaml, task")
    assert str(error.value) == message


def test_a_file_that_failed_and_was_corrected_loads(tmp_path):
    with pytest.raises(ScenarioError):
        load_function(_folder(tmp_path, task="TASK = 1 / 0\n"), "task.py:TASK")
    assert load_function(_folder(tmp_path, task="TASK = 4\n"), "task.py:TASK") == 4


@pytest.mark.parametrize("reference", ["task.py", "task:TASK", "../task.py:TASK", "/etc/task.py:TASK", "no.py:TASK"])
def test_a_reference_that_leads_nowhere_or_out_is_refused(tmp_path, reference):
    (tmp_path / "inner").mkdir()
    _folder(tmp_path, task="TASK = 1\n")
    with pytest.raises(ScenarioError) as error:
        load_function(tmp_path / "inner", reference)
    assert "scenario.yaml" in str(error.value)


def test_a_link_that_leads_out_is_refused(tmp_path):
    (tmp_path / "inner").mkdir()
    _folder(tmp_path, task="TASK = 1\n")
    (tmp_path / "inner" / "task.py").symlink_to(tmp_path / "task.py")
    with pytest.raises(ScenarioError, match="leads out of its folder"):
        load_function(tmp_path / "inner", "task.py:TASK")


def test_what_a_users_function_raises_is_said_with_its_line(tmp_path):
    text = "import numpy as np\n\n\ndef reward(a, b):\n    return np.add(a, b)\n"
    folder = _folder(tmp_path, task=text)
    reward = blamed(load_function(folder, "task.py:reward"), folder, "task reward")
    assert reward(1, 2) == 3
    import numpy as np

    with pytest.raises(ScenarioError, match=r"task reward: task\.py, line 5: got ValueError: operands could not"):
        reward(np.zeros(2), np.zeros(3))
