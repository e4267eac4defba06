"""Command line: ``python -m sim COMMAND``; ``python -m sim --help`` lists the commands."""

import os
import sys

if __name__ == "__main__":  # worker processes import this module under another name
    from sim.cli import main

    for stream in (sys.stdout, sys.stderr):  # names that the terminal's encoding lacks are escaped
        stream.reconfigure(errors="backslashreplace")  # pyright: ignore
    code = main()
    if code > 128:  # interrupted: wait for no thread that is in compiled code
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
    sys.exit(code)
