"""Generating strikes: the same bytes from the same seed, resumed where it stopped, and never mixed."""

import pytest

from rsr.common.errors import ConfigError, WorkspaceError
from rsr.common.files import sha256
from rsr.learned.clash import generate as module, generate_pairs, load_pairs
from rsr.scenarios.built_in.strike import load_shape


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr(module, "SHARD", 100)


def test_what_was_interrupted_goes_on_to_the_same_bytes(square, tmp_path, small_shards):
    whole = generate_pairs(square, tmp_path / "whole", 250)
    other = generate_pairs(square, tmp_path / "other", 250, threads=1)
    assert sha256(whole) == sha256(other)
    (other / "shard-001.npz").unlink()
    (other / "shard-002.npz").write_bytes(b"cut short")
    kept = (other / "shard-000.npz").stat().st_mtime_ns
    with pytest.raises(WorkspaceError, match="1 whole shards of 3"):
        load_pairs(other)
    seen = []
    generate_pairs(square, other, 250, advance=lambda fraction, words="": seen.append(fraction))
    assert sha256(whole) == sha256(other)
    assert (other / "shard-000.npz").stat().st_mtime_ns == kept
    assert seen == pytest.approx([1 / 3, 2 / 3, 1])
    pairs = load_pairs(other)
    assert len(pairs) == 250
    assert 100 < pairs.table_one.sum() < 150


def test_a_folder_holds_one_set_of_strikes(square, tmp_path, small_shards):
    folder = generate_pairs(square, tmp_path, 100)
    with pytest.raises(WorkspaceError, match="another seed"):
        generate_pairs(square, folder, 100, seed=1)
    with pytest.raises(WorkspaceError, match="another shape"):
        generate_pairs(load_shape("triangle"), folder, 100)
    (folder / "card.json").write_text("{")
    with pytest.raises(WorkspaceError, match=r"card\.json that cannot be read"):
        generate_pairs(square, folder, 100)


def test_too_few_strikes_are_refused(square, tmp_path):
    with pytest.raises(ConfigError, match="at least 100"):
        generate_pairs(square, tmp_path / "none", 0)
    assert not (tmp_path / "none").exists()


def test_a_folder_without_strikes_is_said_to_be_one(tmp_path):
    with pytest.raises(WorkspaceError, match="rsr clash data"):
        load_pairs(tmp_path)
