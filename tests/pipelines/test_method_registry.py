"""Every registered method makes a calibrator of one contract, from the same settings and folders."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from rsr.calibration import METHODS, Calibrator
from rsr.common.errors import ConfigError
from rsr.config import LoopConfig, TuneConfig
from rsr.pipelines.methods import REGISTRY, MethodFolders, check_method, make_calibrator, simulator_of
from rsr.simulators import MujocoSimulator
from tests.push_samples import push_cube


@pytest.mark.parametrize("name", REGISTRY)
def test_every_method_makes_a_calibrator(name, tmp_path):
    made = make_calibrator(LoopConfig(tune=TuneConfig(method=name)), MethodFolders(tmp_path))
    contract = list(inspect.signature(Calibrator.fit).parameters)[1:]
    assert list(inspect.signature(made.fit).parameters) == contract
    assert not list(tmp_path.iterdir()), "nothing is written before the fit"


def test_all_searches_and_both_learning_methods_are_registered():
    assert tuple(REGISTRY) == (*METHODS, "clash", "gnn")


def test_unknown_method_names_all_that_exist():
    with pytest.raises(ConfigError, match=r"got calibration method 'annealing'; expected one of mjx, .*, clash, gnn\."):
        check_method("annealing")


@pytest.mark.parametrize("method", [None, "nominal", "cmaes"])
def test_methods_that_learn_nothing_stand_for_mujoco(method, tmp_path):
    with simulator_of(push_cube(), method, tmp_path) as simulator:
        assert isinstance(simulator, MujocoSimulator)


def test_reading_the_registry_loads_neither_torch_nor_jax():
    code = "import sys, rsr.pipelines.methods; print([name for name in ('torch', 'jax') if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
