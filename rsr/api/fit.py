"""A calibration's result: its values, its figures, its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rsr.api.display import NotebookFigure, html_lines, html_table, text_table
from rsr.calibration import Calibration, SavedModel, load_calibration, save_calibration, save_tuned_model
from rsr.common import CalibrationError, read_json, write_json
from rsr.scenarios import Scenario, scenario_of

_SCENARIO, _RUNS = "scenario", "fitted_runs.json"
_HEADER = ("parameter", "value", "95 % interval", "verdict", "unit")


@dataclass(frozen=True, repr=False)
class Fit:
    """Parameters with intervals and verdicts, and how well they predict runs that were not fitted.

    Shows itself as a table, in a notebook as HTML.

    Args:
        scenario: what was calibrated.
        calibration: all that the method found; `rsr.calibration.Calibration`.
        fitted_runs: hashes of the runs that were fitted, by which `rsr.evaluate` knows them again.

    Examples:
        >>> fit = rsr.calibrate(arm, runs)  # doctest: +SKIP
        >>> fit.values["damping"], fit.interval("damping")  # doctest: +SKIP
        (1.52, (1.49, 1.55))
    """

    scenario: Scenario
    calibration: Calibration
    fitted_runs: tuple[str, ...] = ()

    @property
    def values(self) -> Mapping[str, float]:
        """Parameter -> value, in its unit."""
        return {name: estimate.value for name, estimate in self.calibration.estimates.items()}

    @property
    def verdicts(self) -> Mapping[str, str]:
        """Parameter -> what the runs say of it: identified, weak, not identifiable, at bound."""
        return {name: estimate.verdict for name, estimate in self.calibration.estimates.items()}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings that concern the values."""
        return self.calibration.warnings

    @property
    def status(self) -> str:
        """`converged`, `budget spent`, or `no improvement`: what was known before predicts better, and was kept."""
        return self.calibration.status

    def interval(self, name: str) -> tuple[float, float]:
        """The 95 % interval of a parameter, in its unit."""
        if name not in self.calibration.estimates:
            raise CalibrationError(
                got=f"parameter '{name}'",
                expected=f"one of {', '.join(self.calibration.estimates)}",
                where="interval",
                next_step="Correct the name.",
            )
        estimate = self.calibration.estimates[name]
        return estimate.lower, estimate.upper

    def __repr__(self) -> str:
        return "\n".join([self._title, text_table(_HEADER, self._rows, left=(0, 3, 4)), *self._notes])

    def _repr_html_(self) -> str:
        return str(
            html_lines([self._title]) + html_table(_HEADER, self._rows, left=(0, 3, 4)) + html_lines(self._notes)
        )

    @property
    def _title(self) -> str:
        return f"{self.scenario.name}, {self.calibration.method}: {self.calibration.status}"

    @property
    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (name, f"{each.value:.4g}", f"{each.lower:.4g} to {each.upper:.4g}", each.verdict, _shown_unit(each.unit))
            for name, each in self.calibration.estimates.items()
        ]

    @property
    def _notes(self) -> list[str]:
        known = self.calibration.evidence
        others = f". {self.scenario.gap_channel} on {len(known.held_out)} others"
        in_turn = f", and judged in turn by fits to the others. {self.scenario.gap_channel}"
        gap = (
            f"{len(known.fitted)} runs fitted{in_turn if known.crossed else others}: RMS error {known.gap_before:.3g} "
            f"{known.gap_unit} before, {known.gap_after:.3g} {known.gap_unit} after"
        )
        return [gap, *(f"warning: {warning}" for warning in self.warnings)]

    def plot(self) -> NotebookFigure:
        """Draw values and intervals against the prior; a matplotlib figure."""
        from rsr.api.display import forest

        return forest(self.scenario, self.calibration)

    def save(self, folder: str | Path) -> Path:
        """Write the calibration, and the scenario beside it, into a folder that `load` reads."""
        folder = Path(folder)
        save_calibration(self.calibration, folder)
        self.scenario.save(folder / _SCENARIO)
        write_json(folder / _RUNS, list(self.fitted_runs))
        return folder

    @classmethod
    def load(cls, folder: str | Path, scenario: Scenario | None = None) -> Fit:
        """Read what `save` wrote, or what `rsr calibrate --out` did.

        Args:
            scenario: of a calibration that the command line made, whose folder holds no scenario and lies in no
                campaign.

        Raises:
            CalibrationError: the folder holds no calibration, or one of another scenario.
            ConfigError: its scenario is not to be found.

        Examples:
            >>> rsr.Fit.load("calibration", rsr.load_scenario("push_cube"))  # doctest: +SKIP
        """
        folder = Path(folder)
        calibration = load_calibration(folder)
        if scenario is None:
            scenario = scenario_of(folder, calibration.scenario)
        if tuple(calibration.estimates) != scenario.space.names:
            raise CalibrationError(
                got=f"a calibration of {calibration.scenario} ({', '.join(calibration.estimates)})",
                expected=f"one of {scenario.name} ({', '.join(scenario.space.names)})",
                where=str(folder),
                next_step="Give the scenario that it was made for.",
            )
        runs = folder / _RUNS
        return cls(scenario, calibration, tuple(read_json(runs)) if runs.is_file() else ())

    def save_model(self, path: str | Path) -> SavedModel:
        """Write the tuned model as an MJCF that plain MuJoCo loads to the same rollout, to 1e-9; this is checked.

        Meshes are copied beside it. What an MJCF cannot say (delays, sensors, effects) goes into a YAML file beside it.

        Raises:
            ScenarioError: MJCF cannot say it, or the file does not simulate as the scenario does; nothing is written.

        Examples:
            >>> fit.save_model("tuned.xml").left_out  # doctest: +SKIP
            {'delay': 0.021}
        """
        return save_tuned_model(self.scenario, self.calibration, Path(path))


def _shown_unit(unit: str) -> str:
    return "" if unit == "1" else unit
