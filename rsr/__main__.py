"""`python -m rsr` is the command `rsr`."""

import sys

from rsr.cli import main

if __name__ == "__main__":
    sys.exit(main())
