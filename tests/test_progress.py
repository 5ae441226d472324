"""Progress of parts as progress of the whole."""

from __future__ import annotations

from rsr.progress import part_of


def test_a_part_goes_from_its_start_to_its_end():
    seen = []
    whole = part_of(lambda fraction, words: seen.append((fraction, words)), 0.2, 0.6)
    inner = part_of(whole, 0.5, 1.0)
    whole(0.0, "begun")
    inner(0.0)
    inner(1.0, "done")
    assert seen == [(0.2, "begun"), (0.4, ""), (0.6, "done")]
