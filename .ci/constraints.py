"""Turn pip's installation report into exact pins: `constraints.py REPORT.json constraints.txt`."""

import json
import sys
from pathlib import Path

HEADER = """\
# The complete set of versions for the base install and the extras dev, docs, hdf5, rerun,
# ros, s3 and scale. The tests run on it.
# Made by `make constraints` on Python 3.11, Linux, x86-64. Used by `make install`; by hand:
#     pip install --constraint constraints.txt --editable '.[dev]'
# Not for the extra robot: LeRobot 0.4 needs an older torch, hence an environment of its own.
"""


def pins(report: dict) -> list[str]:
    """List name==version, without local labels such as +cpu: which build pip finds is the machine's affair."""
    packages = (item["metadata"] for item in report["install"])
    versions = {package["name"]: package["version"].split("+")[0] for package in packages}
    del versions["rsr"]
    return [f"{name}=={versions[name]}" for name in sorted(versions, key=str.lower)]


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    target.write_text(HEADER + "\n".join(pins(json.loads(source.read_text()))) + "\n")
