"""`rsr check --scenario S`, without recordings: could a campaign begin, and as what it was understood."""

from __future__ import annotations

from own_arm import write_own_arm

from rsr.cli import main

BALL = '<body name="ball"><freejoint/><geom size="0.02" pos="0 0 3"/></body>'
UNSEEN = f'adds: {{world: \'{BALL}<body name="vane"><joint name="vane"/><geom size="0.1"/></body>\'}}\ntitle:'


def said(capsys, path, *edits: str) -> str:
    text = path.read_text()
    for old, new in zip(edits[::2], edits[1::2], strict=True):
        text = text.replace(old, new, 1)
    path.write_text(text)
    main(["check", "--scenario", str(path)])
    return " ".join("".join(capsys.readouterr()).split())


def test_a_scenario_in_order_shows_what_each_command_drives(tmp_path, capsys):
    words = said(capsys, write_own_arm(tmp_path))
    assert words.startswith("use own_arm: 40 steps of 0.05 s an episode; its task was tried on a few starts")
    assert "│ q_set.shoulder │ shoulder │ position │ -2 │ 2 │" in words
    assert "│ q │ base, shoulder, elbow │ rad │ 0.002 │" in words
    assert "note" not in words


def test_joints_that_no_channel_shows_are_named(tmp_path, capsys):
    place = "columns: [x, y, z], unit: m, frame: world, reads: {free_joint_position: ball}, noise: 0.01"
    path = write_own_arm(tmp_path)
    (tmp_path / "task.py").unlink()
    words = said(capsys, path, "title:", UNSEEN, "\nparameters:", f"\n  p: {{{place}}}\nparameters:")
    assert "use own_arm: 40 steps of 0.05 s an episode; no task: a campaign without a policy" in words
    assert "note: no channel shows how 'ball' is turned" in words
    assert "note: no channel shows joint 'vane': simulations of a recording begin with it as in" in words
    assert "'shoulder'" not in words


def test_a_mesh_in_mm_is_named_with_the_scale_that_mends_it(tmp_path, capsys):
    path = write_own_arm(tmp_path)
    corners = " ".join(f"{x} {y} {z}" for x in (0, 60) for y in (0, 40) for z in (0, 20))
    tool = "<body name='tool'><geom type='mesh' mesh='tool' contype='0' conaffinity='0'/></body>"
    asset = f"<asset><mesh name='tool' vertex='{corners}'/></asset>"
    words = said(capsys, path, "title:", f'adds: {{world: "{tool}", mjcf: "{asset}"}}\ntitle:')
    assert "note: mesh 'tool' of body 'tool' is 60 m long" in words, words
    assert 'scale="0.001 0.001 0.001"' in words
    mended = "<mesh name='tool' scale='0.001 0.001 0.001'"
    assert "note" not in said(capsys, path, "<mesh name='tool'", mended)


def test_a_mistake_in_the_task_is_refused_as_a_campaign_would(tmp_path, capsys):
    path = write_own_arm(tmp_path)
    (tmp_path / "task.py").write_text((tmp_path / "task.py").read_text().replace('("q",)', '("p",)'))
    assert "task of own_arm, observation term joints: got 'p'" in said(capsys, path)
