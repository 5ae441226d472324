"""params.yaml: every way to get it wrong has its own words."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from rsr.common.errors import ConfigError
from rsr.config import LoopConfig, dump_config, load_config, parse_config


def test_what_is_written_is_read_back(tmp_path):
    config = parse_config({"seed": 7, "tune": {"method": "sysid"}, "infogap": {"skew": 1e-5}}, "test")
    dump_config(config, tmp_path / "params.yaml")
    assert load_config(tmp_path / "params.yaml") == config
    assert config.infogap.skew == 1e-5


def test_missing_sections_keep_their_defaults(tmp_path):
    (tmp_path / "params.yaml").write_text("seed: 3\n")
    assert load_config(tmp_path / "params.yaml") == LoopConfig(seed=3)
    (tmp_path / "params.yaml").write_text("")
    assert load_config(tmp_path / "params.yaml") == LoopConfig()


def test_settings_are_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        LoopConfig().seed = 1  # pyright: ignore


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "stop: {gab_m: 3}",
            "{path}: stop: got unknown key 'gab_m'; expected one of gap_m. Did you mean 'gap_m'? Correct or remove it.",
        ),
        (
            "sead: 3",
            "{path}: top level: got unknown key 'sead'; expected one of scenario, seed, reality, start, tune, infogap, "
            "retrain, evaluate, stop, clash, gnn. Did you mean 'seed'? Correct or remove it.",
        ),
        (
            "stop: {gap_m: -1}",
            "{path}: stop.gap_m: got -1; expected greater than or equal to 0. Correct this value.",
        ),
        (
            "stop: 3",
            "{path}: stop: got 3; expected a section of the form `{{key: value}}`. Correct this value.",
        ),
        (
            "infogap: {kappa: .inf}\nseed: two",
            "{path}: seed: got 'two'; expected a valid integer, unable to parse string as an integer. "
            "Correct this value. (1 more after this one.)",
        ),
        ("- a\n- b", "{path}: got a list; expected YAML of the form `section: {{key: value}}`. {correct}"),
        (
            "tune: [",
            "{path}: got while parsing a flow node expected the node content, but found '<stream end>' "
            'in "<unicode string>", line 1, column 8: tune: [ ^; '
            "expected YAML of the form `section: {{key: value}}`. {correct}",
        ),
    ],
)
def test_bad_settings(tmp_path, text, message):
    path = tmp_path / "params.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    correct = "Correct the file; `git diff` shows what changed in it."
    assert str(caught.value) == message.format(path=path, correct=correct)


def test_no_settings(tmp_path):
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / "params.yaml")
    assert str(caught.value) == (
        f"{tmp_path}/params.yaml: got no such file; expected the settings of the campaign. "
        "Run the command inside a workspace, or restore the file with `git checkout`."
    )
