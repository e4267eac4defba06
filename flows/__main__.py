"""``python -m flows``: what a unit costs and how to take it away."""

import os
import sys

if __name__ == "__main__":  # worker processes import this module under another name
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "flows", *sys.argv[1:]])

    from flows.cli import main

    for stream in (sys.stdout, sys.stderr):  # names that the terminal's encoding lacks are escaped
        stream.reconfigure(errors="backslashreplace")  # pyright: ignore
    sys.exit(main())
