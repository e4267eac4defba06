"""Command line: ``python -m sim COMMAND``; ``python -m sim --help`` lists the commands."""

import sys

from sim.cli import main

if __name__ == "__main__":
    sys.exit(main())
