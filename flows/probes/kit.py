"""Write a folder with a program, its operands and how to build and run it."""

from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

from vitruvian.common.errors import UserError
from vitruvian.common.files import write_all
from vitruvian.common.validate import nearest, one_of
from vitruvian.flows.probes import cuda, hip, python, x86
from vitruvian.flows.probes.file import ProbeSection, pack
from vitruvian.flows.probes.instruction import ProbedInstruction
from vitruvian.golden.machines.probe import KIT_VERSION, Cases

#: Instructions of each target.
TARGETS: dict[str, tuple[ProbedInstruction, ...]] = {
    "cuda": cuda.INSTRUCTIONS,
    "hip": hip.INSTRUCTIONS,
    "amx": x86.AMX,
    "avx512": x86.AVX512,
    "python": (),  # any formats and number of terms
}

_README = """\
# Probe of a matrix unit: {target}

`make` builds the program and runs it; it reads inputs.bin and writes outputs.bin. {build}
`vitruvian probe read outputs.bin` then says which known machines return these results, or infers
the rule.

Kit version {version}, seed {seed}, {count} instructions:

{names}

inputs.bin holds the operands: a header of 128 bytes, a header of 256 bytes for each instruction
(the struct Section of the program), and for each instruction the codes of A and B by rows, C, the
scales of A and B if there are any, and room for D. outputs.bin is the same file with D, the status
of each instruction and the name of the device filled in.
"""
_BUILD = {
    "cuda": "It needs nvcc of CUDA 12.8 or later; `make ARCH=sm_90a` chooses the GPU (sm_90a for "
    "wgmma, sm_120a for block scales).",
    "hip": "It needs hipcc; `make ARCH=gfx942` chooses the GPU.",
    "amx": "It needs GCC 11 or Clang 12, Linux 5.16 and a processor with AMX.",
    "avx512": "It needs GCC 10 or Clang 9 and a processor with AVX-512 BF16.",
    "python": "Fill in the function unit() of probe.py before, or name a program with `make "
    'RUN="./simulator"`.',
}


def chosen(target: str, patterns: list[str]) -> list[ProbedInstruction]:
    """Return the instructions of a target whose names match a pattern with * and ?.

    Raises
    ------
    UserError
        If the target is unknown, or if a pattern matches no name.
    """
    one_of("target", target, TARGETS)
    if target == "python":
        return python.instructions(patterns)
    every = TARGETS[target]
    found: list[ProbedInstruction] = []
    for pattern in patterns or ["*"]:
        own = [each for each in every if fnmatchcase(each.name, pattern)]
        if not own:
            names = ", ".join(each.name for each in every[:6])
            more = f" and {len(every) - 6} more" if len(every) > 6 else ""
            hint = nearest(pattern, [each.name for each in every])
            raise UserError(f"instruction must be one of {names}{more}, not {pattern!r}{hint}")
        # Two patterns may match the same instruction.
        found += own
    return list(dict.fromkeys(found))


def write(
    target: str,
    patterns: list[str],
    folder: Path,
    seed: int,
    progress: Callable[[str, int, int], object],
) -> list[ProbedInstruction]:
    """Write the program and the operands into a folder, all files or none.

    Parameters
    ----------
    patterns : list of str
        Names of instructions, with * and ?; all by default.
    seed : int
        Start of the random operands.
    progress : callable
        Function that is called with (name, instructions done, all instructions).
    """
    instructions = chosen(target, patterns)
    sections: list[ProbeSection] = []
    made: dict[tuple[object, ...], Cases] = {}
    for number, each in enumerate(instructions):
        progress(each.name, number, len(instructions))
        # Operands take most of the time, and many instructions differ only in what computes them.
        if each.operands not in made:
            made[each.operands] = each.cases(seed)
        sections.append(ProbeSection(each.name, made[each.operands]))
    if target == "cuda":
        texts = cuda.program(instructions)
    elif target == "hip":
        texts = hip.program(instructions)
    elif target == "python":
        texts = python.program()
    else:
        texts = x86.program(target)
    names = "\n".join(f"- `{each.name}`" for each in instructions)
    readme = _README.format(
        target=target,
        build=_BUILD[target],
        version=KIT_VERSION,
        seed=seed,
        count=len(instructions),
        names=names,
    )
    files: dict[Path, bytes | str] = {folder / name: text for name, text in texts.items()}
    files[folder / "README.md"] = readme
    files[folder / "inputs.bin"] = pack(sections, seed)
    write_all(files)
    return instructions
