"""A robot problem: an MJCF scene, its channels, its tunable parameters, and how recordings map onto states."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from rsr.common import chosen
from rsr.scenarios.channels.observed import Observed, RecordedVelocity
from rsr.scenarios.channels.sensor_errors import SensorScale
from rsr.scenarios.channels.smoothing import noise_left, unrest
from rsr.scenarios.collision import CollisionPair, SceneCollision
from rsr.scenarios.effects.applied import Effects, Setting
from rsr.scenarios.effects.command_laws import CommandLaw, reach_steps
from rsr.scenarios.metrics import Evaluation
from rsr.scenarios.models.trial_model import without_pictures
from rsr.scenarios.parameters.bindings import Binding, refresh_constants
from rsr.scenarios.parameters.space import ParameterSpace
from rsr.scenarios.per_episode import EpisodeValue
from rsr.sessions import Channel, Episode

if TYPE_CHECKING:
    from rsr.scenarios.channels.declared_channels import Commanded, Measured
    from rsr.scenarios.motion.commands import StatedLimits
    from rsr.scenarios.parameters.declared_parameters import TunedParameter

LONGEST_WINDOW_S = 0.6
"""Length of windows where a scenario leaves it open, at most."""


EPISODE_S = 5.0
"""Length of a usual episode, where nothing else is said."""


@dataclass(frozen=True)
class Scenario:
    """One robot problem, loaded from YAML and MJCF by `rsr.scenarios.load_scenario`.

    Args:
        history_steps: commands before a window's start that may still act (H): those that a control delay reaches back
            to, and before these `settling_steps` of which only actuators with internal state know.
        delay_parameter: index of the parameter that delays commands, if there is one.
        command: the channel whose values are the simulator's `ctrl`; None where nothing is commanded.
        gap_channel: the channel whose RMS error is called *the* gap.
        window_s: see `window_steps`; None where the scenario leaves it to the fit.
        gap_horizon_s: see `gap_horizon_steps`.
        repeats_share: the tag that episodes have in common when they repeat one trial. Never split such episodes
            between fitting and judging.
        sensor_delays: (channel, index of the parameter that is its delay in s); see `rsr.scenarios.channels.sensors`.
        sensor_scales: gains and biases of channels that are parameters.
        structure: options of the MJCF that are to be compared, with their values; see `structure`.
        bias_window_s: beginning of an episode that its sensors' biases are estimated from; what follows is judged.
        collision: the geoms whose impacts a learnt model may compute.
        source: what the model was compiled from where that was no file; `mjcf` is then but a name.
        limits: of motion, as far as the YAML file states them.
        file: the YAML file that it was loaded from; None where it was made in Python.
        settling_steps: see `history_steps`; 0 where no actuator has internal state.
        effects: physics that MuJoCo lacks; their recorded settings follow the commands as further columns.
        per_episode: values that come with each recording.
        task: the section of this name in the YAML file; see `rsr.scenarios.tasks.stated_task`.
    """

    name: str
    title: str
    mjcf: Path
    control_dt_s: float
    history_steps: int
    episode_steps: int
    space: ParameterSpace
    bindings: tuple[Binding, ...]
    delay_parameter: int | None
    observed: tuple[Observed, ...]
    other_channels: tuple[Channel, ...]
    command: str | None
    gap_channel: str
    base_model: mujoco.MjModel
    evaluation: Evaluation
    velocities: tuple[RecordedVelocity, ...] = ()
    repeats_share: str | None = None
    window_s: float | None = None
    gap_horizon_s: float = 1.0
    sensor_delays: tuple[tuple[str, int], ...] = ()
    sensor_scales: tuple[SensorScale, ...] = ()
    bias_window_s: float = 2.0
    structure: tuple[tuple[str, tuple[str | int | float, ...]], ...] = ()
    collision: CollisionPair | SceneCollision | None = None
    source: mujoco.MjSpec | None = None
    limits: StatedLimits | None = None
    file: Path | None = None
    settling_steps: int = 0
    effects: Effects | None = None
    per_episode: tuple[EpisodeValue, ...] = ()
    task: Mapping[str, Any] | None = field(default=None, compare=False)

    @classmethod
    def from_mjcf(
        cls,
        mjcf: str | Path | mujoco.MjSpec,
        *,
        dt: float,
        measured: Mapping[str, Measured],
        tune: Mapping[str, TunedParameter],
        command: Mapping[str, Commanded] | None = None,
        name: str | None = None,
        title: str | None = None,
        gap_channel: str | None = None,
        window_s: float | None = None,
        gap_horizon_s: float | None = None,
        structure: Mapping[str, Sequence[str | int | float]] | None = None,
        episode_s: float = EPISODE_S,
    ) -> Scenario:
        """Make a scenario in Python; `save` writes the YAML file that says the same.

        Args:
            mjcf: path of an MJCF or URDF file, or an MjSpec. Give names to what is measured, commanded and tuned.
            dt: time between two rows of a run, s; a whole number of the model's time steps.
            measured: channel -> what it shows: `rsr.joints`, `rsr.free_joint_position`, ...
            tune: parameter -> where it acts: `rsr.scale`, `rsr.absolute`, `rsr.delay`, ...
            command: the one channel that becomes `ctrl`, made by `rsr.actuators`; none where nothing is commanded.
            name: by default the file's.
            title: one line for people; by default the name.
            gap_channel: whose RMS error is called *the* gap; by default the first measured one.
            window_s: length of the windows that parameters are fitted on; by default the fit chooses it.
            gap_horizon_s: how long held-out runs are replayed at a time, 1.0 by default.
            structure: option -> values to compare, such as {"cone": ["pyramidal", "elliptic"]}; docs/scenarios.md.
            episode_s: length of a usual run.

        Raises:
            ScenarioError: the MJCF does not compile, or has no element of a name that is given.

        Examples:
            >>> arm = rsr.Scenario.from_mjcf(  # doctest: +SKIP
            ...     "arm.xml", dt=0.01,
            ...     measured={"q": rsr.joints("shoulder", "elbow", noise=0.002)},
            ...     command={"u": rsr.actuators("shoulder", "elbow")},
            ...     tune={"damping": rsr.scale("joint.damping"), "gain": rsr.scale("actuator.kp")},
            ... )
        """
        from rsr.scenarios.building import from_mjcf

        options = {"gap_channel": gap_channel, "window_s": window_s, "gap_horizon_s": gap_horizon_s}
        options["structure"] = structure and {option: list(values) for option, values in structure.items()}
        return from_mjcf(mjcf, dt, measured, tune, command, name, title, episode_s, options)

    def save(self, folder: str | Path) -> Path:
        """Write scenario.yaml, the MJCF and its meshes into a folder; returns the YAML's path, for `load_scenario`.

        Examples:
            >>> rsr.load_scenario(arm.save("my_arm")).space == arm.space  # doctest: +SKIP
            True
        """
        from rsr.scenarios.saving import save_scenario

        return save_scenario(self, Path(folder))

    def spec(self) -> mujoco.MjSpec:
        """Copy of the spec that the base model was compiled from, to be changed at will."""
        return mujoco.MjSpec.from_file(str(self.mjcf)) if self.source is None else self.source.copy()

    @property
    def folder(self) -> Path:
        """Folder of the scenario's files: its task, its meshes."""
        return (self.file or self.mjcf).parent

    @property
    def window_steps(self) -> int:
        """Control steps in a window that parameters are fitted on.

        Unless the scenario says otherwise, as long as predictions are judged, and not so long that contact makes a
        chaos of it. A window contains all shorter ones: its late rows count as little as the model is wrong there.
        """
        window_s = self.window_s or min(LONGEST_WINDOW_S, self.gap_horizon_s)
        return max(1, round(window_s / self.control_dt_s))

    @property
    def window_reason(self) -> str:
        """Why windows are that long."""
        if self.window_s is not None:
            return "window_s of the scenario"
        if self.gap_horizon_s <= LONGEST_WINDOW_S:
            return "gap_horizon_s, over which predictions are judged"
        return f"{LONGEST_WINDOW_S:g} s, the longest that is usual: errors grow, and contact amplifies them"

    @property
    def gap_horizon_steps(self) -> int:
        """Control steps that recorded commands are replayed before the simulation is put back on the recording."""
        return max(1, round(self.gap_horizon_s / self.control_dt_s))

    @property
    def shift_steps(self) -> int:
        """Rows of the largest sensor delay, or clock offset of either sign, that the bounds allow."""
        bounds = [
            abs(bound)
            for _, index in self.sensor_delays
            for bound in (self.space.lower[index], self.space.upper[index])
        ]
        return int(np.ceil(max(bounds, default=0.0) / self.control_dt_s - 1e-9))

    @property
    def sensor_parameters(self) -> tuple[int, ...]:
        """Indices of the parameters that act on sensors alone: delays, gains and biases."""
        delays = {index for _, index in self.sensor_delays}
        return tuple(sorted(delays | {scale.parameter for scale in self.sensor_scales}))

    @property
    def channels(self) -> tuple[Channel, ...]:
        velocities = tuple(velocity.channel for velocity in self.velocities)
        return tuple(observed.channel for observed in self.observed) + velocities + self.other_channels

    @property
    def channel_noise(self) -> dict[str, float]:
        """Standard deviation of each observed channel's readings, in its unit; rad for quaternions."""
        return {observed.channel.name: observed.noise for observed in self.observed}

    def observed_channel(self, name: str) -> Observed:
        """The observed channel of this name."""
        named = {observed.channel.name: observed for observed in self.observed}
        advice = "Name a channel that reads simulator coordinates."
        return chosen(name, named, "channel", f"scenario {self.name}", advice)

    def group(self, episode: Episode) -> str:
        """The trial that an episode shows; repeats of one trial have the same."""
        return str(episode.tags.get(self.repeats_share or "", f"episode {episode.index}"))

    @property
    def state_size(self) -> int:
        """Columns n of a row of states: qpos, qvel, activations of actuators, readings of the channels' sensors."""
        return self.physics_size + len(self._sensor_columns)

    @property
    def physics_size(self) -> int:
        """Columns of a row of states that MuJoCo integrates: qpos, qvel and activations."""
        return self.base_model.nq + self.base_model.nv + self.base_model.na

    @property
    def delay_steps(self) -> int:
        """Commands that a control delay, and effects that are latency or lag, may reach back to."""
        return self.history_steps - self.settling_steps

    @property
    def command_laws(self) -> tuple[CommandLaw, ...]:
        """Effects that delay or filter commands."""
        return self.effects.on_commands if self.effects else ()

    @property
    def varies_latency(self) -> bool:
        """Whether commands of one episode may be late by different times."""
        return any(law.varies for law in self.command_laws)

    @property
    def draws_settings(self) -> bool:
        """Whether a setting of effects has no one number where nothing was recorded."""
        return any(each.lowest < each.largest for each in self.settings)

    @property
    def exerts_effects(self) -> bool:
        """Whether effects exert forces; those that only change commands cost nothing in physics steps."""
        return bool(self.effects and self.effects.each)

    @property
    def reach_steps(self) -> int:
        """Control steps of `delay_steps` that are there for effects."""
        return reach_steps(self.command_laws, self.control_dt_s)

    @cached_property
    def _sensor_columns(self) -> list[int]:
        return [column for observed in self.observed for column in observed.sensor_columns]

    @cached_property
    def substeps(self) -> int:
        """Physics steps per control step."""
        return round(self.control_dt_s / self.base_model.opt.timestep)

    def model(
        self, values: np.ndarray, pictures: bool = False, per_episode: np.ndarray | None = None
    ) -> mujoco.MjModel:
        """Make a model with parameters [P] applied and derived constants refreshed.

        Args:
            pictures: keep meshes and textures that only cameras see.
            per_episode: values [C] of an episode; nominal ones by default.
        """
        self.space.check(values)
        given = self.nominal_per_episode if per_episode is None else per_episode
        model = copy.copy(self.base_model if pictures else self._moving_model)
        if self.effects is not None:
            self.effects.prepare(model)
        for binding in self.bindings:
            binding.apply(model, self.base_model, float(binding.value(values, given)))
        refresh_constants(model)
        return model

    @cached_property
    def _moving_model(self) -> mujoco.MjModel:
        return without_pictures(self.base_model, self.spec)

    def delay_s(self, values: np.ndarray) -> float:
        return 0.0 if self.delay_parameter is None else float(values[self.delay_parameter])

    def measure(self, states: np.ndarray, sensordata: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Read the observed channels out of states: name -> [..., width].

        Args:
            states: [..., n] of a `Simulator`; with `sensordata`, qpos and qvel are enough.
            sensordata: [..., nsensordata] of MuJoCo at these states, instead of the readings in them.
        """
        return {
            observed.channel.name: states[..., list(observed.places)]
            if sensordata is None or not observed.sensor_columns
            else sensordata[..., list(observed.sensor_columns)]
            for observed in self.observed
        }

    def sensor_columns(self, name: str) -> tuple[int, ...]:
        """Columns of MuJoCo's `sensordata` that a channel shows; none where it shows coordinates."""
        return self.observed_channel(name).sensor_columns

    def with_readings(self, physics: np.ndarray, sensordata: np.ndarray) -> np.ndarray:
        """Rows of states [..., n] of what MuJoCo integrates [..., nq + nv + na] and senses [..., nsensordata]."""
        return np.concatenate([physics, sensordata[..., self._sensor_columns]], axis=-1)

    @property
    def has_sensors(self) -> bool:
        """Whether a channel reads sensors of the MJCF."""
        return bool(self._sensor_columns)

    @cached_property
    def home(self) -> tuple[np.ndarray, np.ndarray]:
        """Pose [nq] and command [nu] of the MJCF's first keyframe; without one its reference pose, and no command."""
        model = self.base_model
        return (model.key_qpos[0], model.key_ctrl[0]) if model.nkey else (model.qpos0, np.zeros(model.nu))

    def commands(self, episode: Episode) -> np.ndarray:
        """Commands in force in each step, [T, nu]; the last row of a recording repeats an earlier command."""
        if self.command is None:
            return np.zeros((len(episode) - 1, self.base_model.nu))
        return episode[self.command][:-1]

    def commands_from(self, episode: Episode, row: int, steps: int) -> np.ndarray:
        """Commands [H + steps, nu + C] of a rollout that starts at a row, those before it included that may still act.

        Before and after the episode the first and last recorded ones stand in. The last C columns are the values per
        episode, the same in every row, and then the recorded settings of effects.
        """
        commands = self.commands(episode)
        wanted = np.clip(np.arange(row - self.history_steps, row + steps), 0, len(commands) - 1)
        columns = [np.full(len(wanted), each.of(episode)) for each in self.per_episode]
        columns += [episode[each.channel][wanted, each.column] for each in self.settings]
        if not columns:
            return commands[wanted]
        beside = np.column_stack(columns)
        for law in self.command_laws:
            law.check(beside, episode.index)
        return np.concatenate([commands[wanted], beside], axis=1)

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Recorded columns that effects follow."""
        return self.effects.settings if self.effects else ()

    @cached_property
    def nominal_per_episode(self) -> np.ndarray:
        """Values per episode, where nothing was recorded."""
        return np.array([each.nominal for each in self.per_episode])

    @property
    def command_width(self) -> int:
        """Columns nu + C that simulators take as commands."""
        return self.base_model.nu + len(self.per_episode) + len(self.settings)

    def with_per_episode(self, commands: np.ndarray) -> np.ndarray:
        """Commands [..., nu + C]; where they are [..., nu], what stands for the unrecorded is added."""
        if commands.shape[-1] == self.command_width:
            return commands
        given = self.unrecorded
        return np.concatenate([commands, np.broadcast_to(given, (*commands.shape[:-1], len(given)))], axis=-1)

    @cached_property
    def unrecorded(self) -> np.ndarray:
        """What stands [C] for values per episode and settings where nothing was recorded."""
        return np.concatenate([self.nominal_per_episode, [each.otherwise for each in self.settings]])

    def states(self, episode: Episode) -> np.ndarray:
        """States [T + 1, n] of a recording, freed of measurement noise as far as a few rows allow (`smooth`).

        Coordinates that no channel observes keep the MJCF's reference value. Activations are 0: simulators settle them
        by the commands before a window.
        """
        from rsr.scenarios.channels.recorded_states import smoothed_states

        return smoothed_states(self, episode)

    def recorded_state(self, episode: Episode, row: int) -> np.ndarray:
        """State [n] of one row as recorded: positions not smoothed, and recorded velocities if there are any."""
        from rsr.scenarios.channels.recorded_states import recorded_state

        return recorded_state(self, episode, row)

    def unrest(self, episode: Episode) -> np.ndarray:
        """How little [T + 1] the state estimated for each row can be trusted: above 1, it is near an impact or kink."""
        from rsr.scenarios.channels.recorded_states import recorded_positions

        return unrest(self.base_model, episode.time_s, *recorded_positions(self, episode))

    @cached_property
    def start_std(self) -> np.ndarray:
        """How wrong `states` are, [2 nv] standard deviations; 0 for coordinates that no channel observes.

        Spins that are inferred are wrong, too: `rsr.scenarios.channels.rolling.start_spread`.
        """
        noise = np.zeros(self.base_model.nv)
        for observed in self.observed:
            noise[list(observed.dofs)] = observed.noise
        return noise_left(noise, self.control_dt_s)
