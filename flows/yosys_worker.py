"""Run one Yosys script in its own process.

Yosys ends its process on any error. The flow therefore starts this file as a program (``python
yosys_worker.py SCRIPT USAGE``), collects its output, and reads the output if the exit code is not
zero. This file imports no module of the project, so it can be started from any directory.
"""

import json
import resource
import sys


def main(script: str, usage: str) -> None:
    """Execute the file ``script`` line by line, then write the peak memory to ``usage``."""
    import pyosys.libyosys as ys

    design = ys.Design()
    with open(script, encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                design.run_pass(line.strip())
    # ABC is a child process, and it may need more memory than Yosys itself.
    peak_kib = max(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    with open(usage, "w", encoding="utf-8") as file:
        json.dump({"peak_mib": round(peak_kib / 1024)}, file)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
