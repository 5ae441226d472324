"""BAM's own model m6, simulator and search, fitted to some runs of a servo and judged on others.

Run by `servo.py` in a Python that has `better-actuator-models` and `optuna`; it knows nothing of rsr. One JSON object
in, on stdin: `fitted`, `judged` (logs as BAM stores them), `trials`, `seed`. One out: `mae_rad`, `fitted_mae_rad`,
`cpu_s`, `parameters`.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
import optuna  # pyright: ignore[reportMissingImports]
from bam.actuators import actuators  # pyright: ignore[reportMissingImports]
from bam.model import models  # pyright: ignore[reportMissingImports]
from bam.simulate import Simulator  # pyright: ignore[reportMissingImports]

ACTUATOR, MODEL = "xl330", "m6"


def together(logs: list[dict[str, Any]]) -> dict[str, Any]:
    """Logs as BAM simulates many: each number an array over the logs."""
    rows = min(len(log["entries"]) for log in logs)
    whole = {key: np.array([log[key] for log in logs]) for key in logs[0] if key not in ("entries", "dt")}
    keys = logs[0]["entries"][0]
    entries = [{key: np.array([log["entries"][row][key] for log in logs]) for key in keys} for row in range(rows)]
    return whole | {"dt": logs[0]["dt"], "entries": entries}


def error(model: Any, log: dict[str, Any]) -> float:
    """Mean absolute error of the position over whole runs, which is also what BAM's fit minimises."""
    with np.errstate(all="ignore"):
        positions = Simulator(model).rollout_log(log, simulate_control=True)[0]
    return float(np.mean(np.abs(np.array(positions) - np.array([row["position"] for row in log["entries"]]))))


def model_of(values: dict[str, float]) -> Any:
    model = models[MODEL]()
    model.set_actuator(actuators[ACTUATOR]())
    for name, parameter in model.get_parameters().items():
        parameter.value = values.get(name, parameter.value)
    return model


def main() -> None:
    asked = json.load(sys.stdin)
    fitted, before = together(asked["fitted"]), time.process_time()
    free = {name: each for name, each in model_of({}).get_parameters().items() if each.optimize}

    def objective(trial: Any) -> float:
        values = {name: trial.suggest_float(name, each.min, each.max) for name, each in free.items()}
        found = error(model_of(values), fitted)
        return found if np.isfinite(found) else 1e3

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.CmaEsSampler(seed=asked["seed"]))
    study.optimize(objective, n_trials=asked["trials"])
    best = model_of(study.best_params)
    judged = error(best, together(asked["judged"]))
    said = {"mae_rad": judged, "fitted_mae_rad": study.best_value, "cpu_s": time.process_time() - before}
    json.dump(said | {"parameters": study.best_params}, sys.stdout)


if __name__ == "__main__":
    main()
