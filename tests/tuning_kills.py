"""`python -m tuning_kills FOLDER TUNING SETTINGS ITERATIONS [NAME]`: a campaign that dies as a file NAME gets its name.

SETTINGS is JSON. Without a NAME it runs to its end. In a process of its own, because it kills itself.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from rsr_tasks.campaign import TABLES, settings_of
from rsr_tasks.loop import run_bare_loop


def main() -> None:
    folder, tuning, settings, iterations, *names = sys.argv[1:]

    def watch(event: str, arguments: tuple) -> None:
        if event == "os.rename" and str(arguments[1]).endswith(names[0]):
            os.kill(os.getpid(), signal.SIGKILL)

    if names:
        sys.addaudithook(watch)
    config = settings_of(tuning, json.loads(settings))  # pyright: ignore
    run_bare_loop(Path(folder), int(iterations), TABLES[tuning], config)


if __name__ == "__main__":
    main()
