"""Progress of parts as progress of the whole."""

from __future__ import annotations

import time

from rsr.common.progress import line, lines, part_of


def test_a_part_goes_from_its_start_to_its_end():
    seen = []
    whole = part_of(lambda fraction, words: seen.append((fraction, words)), 0.2, 0.6)
    inner = part_of(whole, 0.5, 1.0)
    whole(0.0, "begun")
    inner(0.0)
    inner(1.0, "done")
    assert seen == [(0.2, "begun"), (0.4, ""), (0.6, "done")]


def test_lines_come_by_the_clock_also_while_the_work_is_silent():
    said = []
    with lines("calibrate", said.append, every_s=0.05) as advance:
        advance(0.5, "loss 12")
        end = time.monotonic() + 2.0
        while len(said) < 3 and time.monotonic() < end:
            advance(0.5, "loss 12")
    assert said[0].startswith("calibrate: 50% after 0:00:00, at most 0:00:00 left; loss 12")
    assert said[-1] == "calibrate: 100% after 0:00:00; loss 12"
    assert 3 <= len(said) <= 50


def test_short_work_writes_no_line():
    said = []
    with lines("ingest", said.append) as advance:
        advance(1.0, "stored")
    assert said == []


def test_a_line_foresees_what_is_left_only_once_it_can():
    assert line("calibrate", 0.0, "short windows", 8.2) == "calibrate: 0% after 0:00:08; short windows"
    assert line("calibrate", 0.2, "", 60.0) == "calibrate: 20% after 0:01:00, at most 0:04:00 left"
