"""Entry point of the command line: ``vitruvian COMMAND`` or ``python -m vitruvian COMMAND``."""
# PYTHON_ARGCOMPLETE_OK

import os
import sys
from typing import NoReturn


def run() -> NoReturn:
    """Run the command in ``sys.argv`` and end the process with the command's exit code."""
    # A fixed hash seed gives the same names in Verilog every time. A shell that asks for
    # completions gets no Verilog, and a faster answer from one process than from two.
    if os.environ.get("PYTHONHASHSEED") != "0" and "_ARGCOMPLETE" not in os.environ:
        os.environ["PYTHONHASHSEED"] = "0"
        # As it was called: "-m" would put the working directory in front of the modules' path.
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])

    from vitruvian.cli import main

    for stream in (sys.stdout, sys.stderr):  # escape characters that the terminal cannot show
        stream.reconfigure(errors="backslashreplace")  # pyright: ignore
    code = main()
    if code > 128:  # interrupted; threads that run compiled code cannot be stopped
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":  # worker processes import this module under another name
    run()
