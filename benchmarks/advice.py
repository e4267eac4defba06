"""What ``--advise`` says about five kernels, and each gain measured again.

    python benchmarks/advice.py

Synchronisation that is not needed is taken out of the program, which is checked and timed from the
beginning: it must have no finding more, and the gain that was printed. Two of the kernels have a
barrier too many on purpose.
"""

import numpy as np

from vitruvian.sim.davinci import Program, load_chip, simulate
from vitruvian.sim.davinci.cce import build, read_file
from vitruvian.sim.kernels import KERNELS
from vitruvian.sim.roofline.advice import advise


def _text(name: str, **values: object) -> Program:
    kernel = read_file(f"sim/kernels/text/{name}.cce")
    return build(kernel, load_chip("ascend910"), values)[0]


def _built(name: str, barrier: bool) -> Program:
    """Return a kernel, with a barrier of all queues in the middle of each core if it is asked."""
    program = KERNELS[name].build(chip=load_chip("ascend310"), data=False).program
    for core in program if barrier else ():
        half = len(core.instructions) // 2
        rest, core.instructions[half:] = core.instructions[half:], []
        core.pipe_barrier()
        core.instructions += rest
    return program


def kernels() -> dict[str, Program]:
    """Return five programs by name."""
    x = np.zeros(1024, np.float16)
    return {
        "softmax.cce": _text("softmax", x=x, y=x.copy(), rows=8, n=128),
        "matmul": _built("matmul", False),
        "matmul and a barrier": _built("matmul", True),
        "maxpool-im2col": _built("maxpool-im2col", False),
        "mte2+3Con and a barrier": _built("mte2+3Con", True),
    }


def main() -> None:
    """Print the advice and the gains measured again."""
    for name, program in kernels().items():
        report = simulate(program, cube=None)
        found = advise(program, report)
        total = report.times.total - int(report.lowered.begin.min())
        print(f"\n{name}: {len(program)} instructions, {report.total_s * 1e6:.2f} µs")
        print(found.text())
        for change in found.unneeded:
            kept = {key: list(core.instructions) for key, core in program.cores.items()}
            for core in program:
                core.instructions = [
                    i for i in core.instructions if str(i.position) not in change.lines
                ]
            again = simulate(program, cube=None)
            time = again.times.total - int(again.lowered.begin.min())
            more = len(again.findings) - len(report.findings)
            print(f"  measured again: {1 - time / total:.1%}, {more} findings more")
            for key, core in program.cores.items():
                core.instructions = kept[key]


if __name__ == "__main__":
    main()
