"""Render the table of steps as DVC's pipeline, and the command that the pipeline calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rsr.pipelines.core import START, Step, StepTable
from rsr.workspace import CURVES_FILE, Link, Workspace

LAUNCHER_FILE = "bin/rsr"
PYTHON_FILE = ".rsr/python"
"""Holds the path of the Python that last ran the loop in this workspace; of this machine, so not under git."""

_HEADER = """\
# Rendered from the table in rsr/pipelines/core.py; the loop rewrites it. What `item` is, iterations.json says:
# {"chain": {"2": {"dir": "iterations/002", "prev": "iterations/001", "session": "data/push_cube/session-002"}}}
vars:
  - iterations.json
stages:
"""

# DVC runs a stage's command in whatever shell it was called from. A bare `rsr` would need an activated environment;
# the path of one machine's Python, written into dvc.yaml, would make every stage stale on another machine.
_LAUNCHER = """\
#!/bin/sh
# What dvc.yaml calls. Takes {module} from the active environment, or else from the Python that last ran the loop here,
# or in a folder above: `dvc exp run --temp` works in a copy deep inside the workspace.
if command -v {module} >/dev/null 2>&1; then exec {module} "$@"; fi
folder=$(cd "$(dirname "$0")/.." && pwd)
while [ ! -f "$folder/{python_file}" ] && [ "$folder" != / ]; do folder=$(dirname "$folder"); done
python=$(cat "$folder/{python_file}" 2>/dev/null)
if [ -x "$python" ]; then exec "$python" -m {module} "$@"; fi
echo "{launcher_file}: got no {module} on PATH; expected an active environment. Try: . PATH/TO/.venv/bin/activate" >&2
exit 127
"""


def render_pipeline(table: StepTable, workspace: Workspace | None = None) -> str:
    """Render dvc.yaml: one stage a step, repeated over the chain; plots and models of the iterations there are.

    DVC repeats stages over iterations.json by itself, but neither plots nor artifacts: those are spelt out. What reads
    the campaign's scenario is stale after an edit of it.

    Args:
        workspace: whose chain and scenario; none of either by default.
    """
    chain = workspace.chain() if workspace else None
    lines = [line for step in table.stages for line in _stage(step, workspace)]
    if chain:
        lines += [*_plots(table, chain), *_models(table, chain)]
    return _HEADER + "".join(f"{line}\n" for line in lines)


def render_launcher(table: StepTable) -> str:
    """Render bin/rsr, which finds rsr from any shell."""
    return _LAUNCHER.format(module=table.module, python_file=PYTHON_FILE, launcher_file=LAUNCHER_FILE)


def _stage(step: Step, workspace: Workspace | None) -> Iterator[str]:
    yield f"  {step.name}:"
    if step.foreach:
        link, key, indent = Link(dir="${item.dir}", prev="${item.prev}", session="${item.session}"), "${key}", "      "
        yield "    foreach: ${chain}"
        yield "    do:"
    else:
        link, key, indent = START, "0", "    "
    yield f"{indent}desc: {step.summary}"
    yield f"{indent}cmd: {LAUNCHER_FILE} step {step.name} --iteration {key}"
    yield f"{indent}params:"
    yield f"{indent}  - {link.dir}/params.yaml:"
    yield from (f"{indent}      - {name}" for name in step.settings)
    own = [workspace.relative(path) for path in step.scenario_files(workspace)] if workspace else []
    deps = (*step.deps, *own)
    for heading, templates in (("deps", deps), ("outs", step.outs), ("metrics", step.metrics)):
        yield from _paths(indent, heading, templates, link)


def _plots(table: StepTable, chain: Mapping[int, Link]) -> Iterator[str]:
    if table.plots or table.curves:
        yield "plots:"
    for plot in table.plots:
        yield f"  - {plot.title}:"
        yield f"      x: {plot.x}"
        yield "      y:"
        yield from (f"        {_filled(plot.path, link)}: {plot.y}" for link in chain.values())
    for curve in table.curves:
        yield f"  - {curve.title}:"
        yield "      x: iteration"
        yield "      y:"
        yield f"        {CURVES_FILE}:"
        yield from (f"          - {name}" for name in curve.y)


def _models(table: StepTable, chain: Mapping[int, Link]) -> Iterator[str]:
    """The newest iteration's; a git tag such as policy@v3.0.0 keeps the commit in which it was the third's."""
    if table.models:
        yield "artifacts:"
    for name, template in table.models.items():
        yield f"  {name}:"
        yield f"    path: {_filled(template, chain[max(chain)])}"
        yield "    type: model"


def _filled(template: str, link: Link) -> str:
    return template.format(dir=link.dir, prev=link.prev, session=link.session)


def _paths(indent: str, heading: str, templates: tuple[str, ...], link: Link) -> Iterator[str]:
    if templates:
        yield f"{indent}{heading}:"
    for template in templates:
        path = _filled(template, link)
        if heading == "metrics":  # small and worth a diff: git keeps them, not DVC's cache
            yield f"{indent}  - {path}:"
            yield f"{indent}      cache: false"
        else:
            yield f"{indent}  - {path}"
