"""Hooks of mkdocs: pages that lie beside docs/ become pages of the manual, and all evidence is listed."""

from __future__ import annotations

from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
BESIDE = {"deployments/README.md": "deployments.md", "CHANGELOG.md": "changes.md"}


def on_config(config):
    """List all pages of evidence under the last heading."""
    config.nav[-1]["Evidence"] = [f"evidence/{path.name}" for path in sorted((ROOT / "docs" / "evidence").glob("*.md"))]
    return config


def on_files(files, config):
    """Add the pages, their links seen from docs/."""
    for source, page in BESIDE.items():
        text = (ROOT / source).read_text().replace("](../docs/", "](").replace("](docs/", "](")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown, page, config, files):
    """Lead links to those files to their pages."""
    for source, name in BESIDE.items():
        up = "../" * page.file.src_uri.count("/")
        markdown = markdown.replace(f"]({up}../{source}", f"]({up}{name}")
    return markdown
