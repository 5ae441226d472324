"""The user's settings: `params.yaml`, one section a step. Frozen, and a misspelt key is an error, not a silence."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rsr.common import ConfigError, advice, new_key, new_value, read_yaml, short, write_text

S = TypeVar("S")


class SettingsSection(BaseModel):
    """Base of every section: frozen, unknown keys refused, no infinities."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class RealityConfig(SettingsSection):
    """Where sessions come from, and how much is recorded in each iteration.

    `kind: inbox` waits for sessions in the folder `inbox`; `kind: robot` records on the robot that the file `robot`
    describes. Both are relative to the workspace. `real_time: false` lets a stand-in robot run as fast as it can.
    `largest_mb` is how large a dropped session may be, unpacked, in 2**20 bytes.
    With `approval: true` no policy is deployed before a person approved of it (`rsr approve`); whoever
    it was, unless the workspace has an `approvers.yaml`.
    """

    kind: Literal["stand_in", "inbox", "robot"] = "stand_in"
    seed: int = Field(default=1, ge=0)
    episodes: int = Field(default=96, ge=2)
    inbox: str = "inbox"
    robot: str = "robot.yaml"
    real_time: bool = True
    largest_mb: int = Field(default=1024, ge=1)
    approval: bool = False


class StartConfig(SettingsSection):
    """Iteration 0: the policy trained in the nominal simulator. Later trainings go on with the same algorithm.

    `train_steps` are environment steps at most; null stands for as many as the algorithm was measured to need. Training
    ends earlier where success has levelled off; `rsr.policies.early_stopping` says when.
    """

    algorithm: Literal["ppo", "sac"] = "ppo"
    train_steps: int | None = Field(default=None, ge=1)


class TuneConfig(SettingsSection):
    """Fitting the simulator's parameters to the session; the episodes that are not fitted judge the fit.

    `sensitivity` is of the methods `mjx` and `adam`. `bootstrap` refits that many resamples of the episodes, to check
    the intervals. `structure: true` selects, by successive halving, among the choices that the scenario leaves open.
    """

    method: str = "mjx"
    fit_episodes: int = Field(default=32, ge=1)
    sensitivity: Literal["auto", "mjx", "differences"] = "mjx"
    bootstrap: int = Field(default=0, ge=0)
    structure: bool = False


class InfoGapConfig(SettingsSection):
    """The InfoGap term: its share of the task reward's spread, the skew that caps the divergence, its sample.

    A transition is new by its `step`, which is what a simulator predicts, or by the whole `transition`. The
    bonus is paid `off_target`, where the task is not done yet, or `everywhere`.
    `form: literal` pays Eq. 3 as it is written, times `weight`; then `kappa` plays no part.
    """

    form: Literal["calibrated", "literal"] = "calibrated"
    metric: Literal["saturating", "clipped", "euclidean"] = "saturating"
    order: Literal[1, 2] = 1
    estimator: Literal["kde", "gaussian", "knn", "conditional"] = "kde"
    novelty: Literal["step", "transition"] = "step"
    bonus_region: Literal["off_target", "everywhere"] = "off_target"
    kappa: float = Field(default=0.7, ge=0)
    weight: float = Field(default=1.0, ge=0)
    skew: float = Field(default=0.05, gt=0, lt=1)
    transitions: int = Field(default=1_000, ge=100)


class RetrainConfig(SettingsSection):
    """Training goes on from the previous policy in the tuned simulator; `train_steps` as in `start`.

    `randomise: posterior` gives each copy of the simulator parameters of its own, drawn as the calibration leaves them
    open; `randomise_factor` stretches its standard deviations.
    """

    train_steps: int | None = Field(default=None, ge=1)
    randomise: Literal["none", "posterior"] = "none"
    randomise_factor: float = Field(default=1.0, ge=0)


class EvaluateConfig(SettingsSection):
    """Judging policy and calibration: simulations of each recorded start, and times of the KL of each figure."""

    repeats: int = Field(default=3, ge=1)
    kl_times: int = Field(default=20, ge=1)


class StopConfig(SettingsSection):
    """When the loop ends before its number of iterations. A gap of 0 is never reached: run them all."""

    gap_m: float = Field(default=0.0, ge=0)


class ClashConfig(SettingsSection):
    """A campaign that adapts a surrogate of collisions: `rsr init --pipeline clash`.

    Args:
        pairs: simulated strikes that the surrogate is distilled from.
        train_steps: of the surrogate; null stands for as many as `rsr clash train` takes.
        targets: how many target poses single strikes are planned to.
    """

    pairs: int = Field(default=100_000, ge=100)
    train_steps: int | None = Field(default=None, ge=1)
    targets: int = Field(default=4, ge=1)


class GnnConfig(SettingsSection):
    """A campaign that learns a simulator of contact: `rsr init --pipeline gnn`.

    Args:
        teacher, teacher_budget: the method that identifies the simulator which teaches, and how many points its search
            may try; null stands for what calibrations take anyway.
        trajectories: how many the teacher simulates.
        steps, finetune_steps: of training on those, and on the recorded ones; 0 leaves fine-tuning out.
    """

    teacher: Literal["mjx", "cmaes", "sysid", "adam"] = "cmaes"
    teacher_budget: int | None = Field(default=None, ge=1)
    trajectories: int = Field(default=1_500, ge=1)
    steps: int = Field(default=1_500, ge=1)
    finetune_steps: int = Field(default=60, ge=0)


class LoopConfig(SettingsSection):
    """All settings of one campaign. `params.yaml` is this class, written down.

    With a section `clash` or `gnn` the campaign is one of `flows/clash.py` or `flows/gnn.py`, with other stages than
    the loop's.
    """

    scenario: str = "push_cube"
    seed: int = Field(default=0, ge=0)
    reality: RealityConfig = RealityConfig()
    start: StartConfig = StartConfig()
    tune: TuneConfig = TuneConfig()
    infogap: InfoGapConfig = InfoGapConfig()
    retrain: RetrainConfig = RetrainConfig()
    evaluate: EvaluateConfig = EvaluateConfig()
    stop: StopConfig = StopConfig()
    clash: ClashConfig | None = None
    gnn: GnnConfig | None = None


def load_config(path: Path) -> LoopConfig:
    """Read settings from YAML; whatever is not given keeps its default.

    Raises:
        ConfigError: the file is missing or no YAML, a key is unknown, or a value is out of its range.
    """
    try:
        document = read_yaml(path)
    except FileNotFoundError as error:
        raise ConfigError(
            got="no such file",
            expected="the settings of the campaign",
            where=str(path),
            next_step="Run the command inside a workspace, or restore the file with `git checkout`.",
        ) from error
    except (OSError, ValueError) as error:
        raise _not_settings(path, " ".join(str(error).split())) from error
    if not isinstance(document, dict | None):
        raise _not_settings(path, f"a {type(document).__name__}")
    return parse_config(document or {}, where=str(path))


def parse_config(document: dict[str, Any], where: str) -> LoopConfig:
    """Check settings that come as plain values; `where` names their source in an error."""
    try:
        return LoopConfig.model_validate(document)
    except ValidationError as error:
        raise _explain(error, where) from error


def dump_config(config: LoopConfig, path: Path) -> None:
    """Write settings as YAML, every value spelt out, in the order of the classes; no section that there is not."""
    sections = {name: value for name, value in config.model_dump(mode="json").items() if value is not None}
    write_text(path, yaml.safe_dump(sections, sort_keys=False))


def section_of(section: S | None, name: str, campaign: str) -> S:
    """Take the section that makes a campaign one of `flows/clash.py` or `flows/gnn.py`.

    Args:
        name: of the section, and of the flow.
        campaign: what such a campaign is, for the error.

    Raises:
        ConfigError: there is none.
    """
    if section is None:
        raise ConfigError(
            got=f"settings without a section `{name}`",
            expected=campaign,
            where="params.yaml",
            next_step=f"Begin one in a folder of its own: `python -m rsr_flows.{name} --workspace NEW`.",
        )
    return section


def _not_settings(path: Path, got: str) -> ConfigError:
    return ConfigError(
        got=got,
        expected="YAML of the form `section: {key: value}`",
        where=str(path),
        next_step="Correct the file; `git diff` shows what changed in it.",
    )


def _explain(error: ValidationError, where: str) -> ConfigError:
    """Describe the first problem in our words, and count the others."""
    first, *others = error.errors()
    *parents, key = [str(part) for part in first["loc"]]
    more = f" ({len(others)} more after this one.)" if others else ""
    if first["type"] == "extra_forbidden":
        known = _known_keys(parents)
        if (new := new_key(key)) in known:
            return ConfigError(
                got=f"unknown key '{key}'",
                expected=f"'{new}'",
                where=f"{where}: {'.'.join(parents) or 'top level'}",
                next_step=f"{advice(str(new))}{more}",
            )
        expected = f"one of {', '.join(known)}" if known else "no keys here"
        close = difflib.get_close_matches(key, known, n=1)
        hint = f"Did you mean '{close[0]}'? " if close else ""
        return ConfigError(
            got=f"unknown key {short(key)}",
            expected=expected,
            where=f"{where}: {'.'.join(parents) or 'top level'}",
            next_step=f"{hint}Correct or remove it.{more}",
        )
    section = "a section of the form `{key: value}`"
    return ConfigError(
        got=short(first["input"]),
        expected=section if first["type"] == "model_type" else first["msg"].removeprefix("Input should be "),
        where=f"{where}: {'.'.join([*parents, key])}",
        next_step=f"{advice(new) if (new := new_value(key, first['input'])) else 'Correct this value.'}{more}",
    )


def _known_keys(parents: list[str]) -> list[str]:
    section: type[BaseModel] = LoopConfig
    for name in parents:
        field = section.model_fields.get(name)
        kinds = [field.annotation, *get_args(field.annotation)] if field else []
        known = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
        if not known:
            return []
        section = known[0]
    return list(section.model_fields)
