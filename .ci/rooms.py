"""Draw the rooms of the library and who imports whom, from the imports in the code.

`python .ci/rooms.py` writes docs/rooms.svg; with `--check` it writes nothing and fails where that picture is stale.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "rooms.svg"
WIDTH, ROW, BOX, HEIGHT = 900, 84, 124, 36
ABOVE = (("flows", "rsr_flows"), ("tasks", "rsr_tasks"))  # folder, name of the package

Imports = dict[str, set[str]]


def layers() -> list[list[str]]:
    """Read the rooms, uppermost layer first, from the contract in pyproject.toml. Single modules are no rooms."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    lines = next(contract["layers"] for contract in contracts if contract.get("containers") == ["rsr"])
    named = [[name.strip(" ()") for name in line.replace("|", ":").split(":")] for line in lines]
    rooms = [[name for name in line if (ROOT / "rsr" / name / "__init__.py").exists()] for line in named]
    return [[package] for _, package in ABOVE] + [line for line in rooms if line]


def place(module: str, rooms: set[str]) -> str | None:
    """Name the room in which a module stands, or None."""
    parts = module.split(".")
    room = parts[1] if parts[0] == "rsr" and len(parts) > 1 else parts[0]
    return room if room in rooms else None


def imported(path: Path) -> set[str]:
    """List the modules that a file imports or uses by their full names, wherever the statement stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "rsr":
            found.add(f"rsr.{node.attr}")  # a room that is used as `rsr.room.name`
    return found


def imports(rooms: set[str]) -> Imports:
    """Say for each room which other rooms it imports."""
    found: Imports = defaultdict(set)
    for folder, package in (("rsr", "rsr"), *ABOVE):
        for path in (ROOT / folder).rglob("*.py"):
            inside = path.relative_to(ROOT / folder).with_suffix("").parts
            here = place(".".join((package, *inside)), rooms)
            if here:
                found[here] |= {there for name in imported(path) if (there := place(name, rooms))} - {here}
    return found


def nearest(room: str, links: Imports) -> set[str]:
    """Drop the rooms that another imported room imports too, so that the picture stays readable."""
    return {there for there in links[room] if not any(there in links[other] for other in links[room] - {there})}


def positions(rows: list[list[str]]) -> dict[str, tuple[float, float]]:
    """Place the middle of each room's box, one row a layer."""
    return {
        room: ((column + 1) * WIDTH / (len(row) + 1), (number + 0.5) * ROW)
        for number, row in enumerate(rows)
        for column, room in enumerate(row)
    }


def arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    """Draw a curve from the lower edge of a box to the upper edge of another; long ones bend around what is between."""
    (x1, y1), (x2, y2) = (start[0], start[1] + HEIGHT / 2), (end[0], end[1] - HEIGHT / 2 - 6)
    bend = 0 if y2 - y1 < ROW else 1.1 * (y2 - y1) * (1 if (x1 + x2) / 2 >= WIDTH / 2 else -1) * 0.5
    return (
        f'<path d="M{x1:.0f},{y1:.0f} C{x1 + bend:.0f},{y1 + 0.4 * (y2 - y1):.0f} '
        f'{x2 + bend:.0f},{y2 - 0.4 * (y2 - y1):.0f} {x2:.0f},{y2:.0f}" class="arrow"/>'
    )


def box(room: str, middle: tuple[float, float], all_imported: set[str]) -> str:
    """Draw a room; its tooltip lists everything that it imports."""
    x, y = middle
    return (
        f"<g><title>{room} imports {', '.join(sorted(all_imported)) or 'no other room'}</title>"
        f'<rect x="{x - BOX / 2:.0f}" y="{y - HEIGHT / 2:.0f}" width="{BOX}" height="{HEIGHT}" rx="6"/>'
        f'<text x="{x:.0f}" y="{y + 5:.0f}">{room}</text></g>'
    )


def picture() -> str:
    """Draw all rooms and arrows as SVG."""
    rows = layers()
    middles = positions(rows)
    links = imports(set(middles))
    arrows = [arrow(middles[room], middles[there]) for room in middles for there in sorted(nearest(room, links))]
    boxes = [box(room, middle, links[room]) for room, middle in middles.items()]
    height = ROW * len(rows)
    style = (
        "rect{fill:#eef2f7;stroke:#44546a} text{font:15px sans-serif;text-anchor:middle;fill:#1b2430} "
        ".arrow{fill:none;stroke:#8497b0;stroke-width:1.4;marker-end:url(#tip)}"
    )
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">',
        f"<!-- Written by .ci/rooms.py --><style>{style}</style>",
        f'<defs>{tip}<path d="M0,0 L8,4 L0,8 z" fill="#8497b0"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" style="fill:white;stroke:none"/>',
    ]
    return "\n".join([*head, *arrows, *boxes, "</svg>"]) + "\n"


def main() -> int:
    drawn = picture()
    if "--check" not in sys.argv[1:]:
        PICTURE.write_text(drawn)
    elif not PICTURE.exists() or PICTURE.read_text() != drawn:
        print("docs/rooms.svg is stale: run python .ci/rooms.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
