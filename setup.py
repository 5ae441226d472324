"""Name the packages; everything else is in pyproject.toml, which cannot install a folder under another name."""

from setuptools import find_packages, setup

# `tasks` and `flows` are anybody's names: installed, and imported in our own code, they are rsr_tasks and rsr_flows.
FOLDERS = {"rsr": "rsr", "rsr_tasks": "tasks", "rsr_flows": "flows"}

setup(
    packages=[
        *(
            name + found.removeprefix(folder)
            for name, folder in FOLDERS.items()
            for found in find_packages(".", include=[folder, f"{folder}.*"])
        ),
        "rsr_flows.deployments",
    ],
    package_dir={**FOLDERS, "rsr_flows.deployments": "deployments"},
)
