"""The frames of pages: header, navigation, sections, in `templates/`."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template


@cache
def template(name: str) -> Template:
    """Load one by its file name; a value that it lacks is an error, and text is escaped."""
    environment = Environment(loader=PackageLoader("rsr.reports"), autoescape=True, undefined=StrictUndefined)
    return environment.get_template(name)
