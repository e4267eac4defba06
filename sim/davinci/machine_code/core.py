"""Programs on the compiled core: assembled, run, and compared with the simulator."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitruvian.sim.davinci.chip.model import ATTO
from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.isa.operands import DTYPES
from vitruvian.sim.davinci.program.program import Core, Program
from vitruvian.sim.davinci.semantics.matrix import Product, SemiringProduct, SpecProduct
from vitruvian.sim.davinci.timing.engine import run
from vitruvian.sim.davinci.timing.lowering import lower
from vitruvian.sim.rtl.core import CoreRun, core_config, refusal_of, run_words

from .chip import core_chip
from .encode import EncodingError, Texts, encode
from .image import ProgramImage

#: Operations that a queue carries out itself.
_SYNCHRONISATION = ("set_flag", "wait_flag", "pipe_barrier")


@dataclass(frozen=True)
class ProgramRun:
    """A program on the core.

    Attributes
    ----------
    outputs : dict of str to ndarray
        The final tensors by name.
    run : CoreRun
    """

    outputs: dict[str, np.ndarray]
    run: CoreRun

    def differing(self, outputs: dict[str, np.ndarray]) -> dict[str, int]:
        """Return the number of bytes that differ from other tensors, by name, where any do."""
        found = {}
        for name, array in self.outputs.items():
            wrong = int(np.count_nonzero(_bytes(array) != _bytes(outputs[name])))
            if wrong:
                found[name] = wrong
        return found


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def assemble(instructions: list[Instruction], config: Any, texts: Texts) -> list[int]:
    """Return the words of instructions for a core, with the word 0 that ends them.

    Raises
    ------
    EncodingError
        If the core lacks an operation, a buffer is too small, or an instruction has no encoding.
    """
    words: list[int] = []
    known: dict[tuple[int, ...], str | None] = {}
    for instr in instructions:
        these = encode(instr, texts)
        if these not in known:
            known[these] = refusal_of(config, instr.op, instr.unit.name, these)
        if known[these]:
            raise EncodingError(f"{instr.position}: {instr.op} {known[these]}")
        for _, span in instr.spans():
            size = config.buffers.get(span.buffer)
            if size is not None and span.end > size:
                raise EncodingError(
                    f"{instr.position}: {instr.op} must stay within the {size} bytes of "
                    f"{span.buffer} of this core, not reach byte {span.end}"
                )
        words += these
    return [*words, 0]


def run_on_core(
    program: Program,
    core: Any = "tiny",
    *,
    latency: int = 1,
    noise: int = 0,
    traced: bool = False,
) -> ProgramRun:
    """Run the instructions of a program for one core on the compiled RTL.

    Parameters
    ----------
    core : str or CoreConfig
        A name in ``hdl.core.CORES``, or parameters.
    latency, noise : int
        As ``run_words`` takes them.
    traced : bool
        If True, record when each instruction begins and ends (``CoreRun.spans``).

    Raises
    ------
    EncodingError
        As ``assemble``.
    ValueError
        If there is no such core, or the program is for several cores.
    CoreFault
        If the core stops with a fault.
    """
    config, only = core_config(core), only_core(program)
    words = assemble(only.instructions, config, Texts())
    counts = None
    if traced:
        counts = Counter(i.unit.name for i in only.instructions if i.op not in _SYNCHRONISATION)
    return run_image(program, config, words, latency=latency, noise=noise, counts=counts)


def run_image(
    program: Program,
    config: Any,
    words: Sequence[int] | np.ndarray,
    *,
    latency: int = 1,
    noise: int = 0,
    counts: Mapping[str, int] | None = None,
) -> ProgramRun:
    """Run words behind the global memory of a program, and return its tensors.

    Parameters
    ----------
    config : CoreConfig
    words : sequence of int
        What unit S of the core starts with: a program, or the image of a kernel.
    latency, noise, counts
        As ``run_words`` takes them.
    """
    from vitruvian.sim.davinci.semantics import Functional

    memory = Functional(program).gm
    done = run_words(config, memory, words, latency=latency, noise=noise, counts=counts)
    outputs = {}
    for name, view in program.tensors.items():
        raw = done.memory[view.offset : view.offset + view.nbytes]
        outputs[name] = raw.view(DTYPES[view.dtype]).reshape(view.shape).copy()
    return ProgramRun(outputs, done)


def predicted_cycles(program: Program, core: Any = "tiny", *, latency: int = 1) -> int:
    """Return the cycles that the event engine predicts for a program on a core.

    Parameters
    ----------
    core, latency
        As ``run_on_core`` takes them.

    Raises
    ------
    Deadlock
        If the program never ends on this core, whose queues are finite.
    ValueError
        If there is no such core, or it lacks an instruction.
    """
    only_core(program)
    chip = core_chip(core, memory_latency=latency)
    lowered, streams = lower(program, chip)
    return round(run(lowered, streams).total * chip.clock_hz / ATTO)


def core_product(core: Any) -> Product:
    """Return the product of a core's own tile, for the functional simulator."""
    tile = core_config(core).tile

    def semiring(operation: str) -> Product:
        spec = tile.spec("fp32" if tile.one_pair else "fp16")
        return SemiringProduct(operation, k=spec.k, window=spec.sum.window)

    return SpecProduct(lambda a, _b, _c: tile.spec(a), semiring)


def image_of(program: Program, core: Any = None) -> ProgramImage:
    """Return a program for one core as machine code.

    Parameters
    ----------
    core : str or CoreConfig, optional
        Refuse what this core lacks; without it, every instruction is encoded.

    Raises
    ------
    EncodingError
        As ``assemble``.
    ValueError
        As ``run_on_core``.
    """
    from vitruvian.sim.davinci.semantics import Functional

    only = only_core(program)
    texts = Texts()
    if core is None:
        words = [word for instr in only.instructions for word in encode(instr, texts)] + [0]
    else:
        words = assemble(only.instructions, core_config(core), texts)
    tensors = [
        {"name": name, "dtype": view.dtype, "shape": view.shape, "byte": view.offset}
        for name, view in program.tensors.items()
    ]
    lines = [str(instr.position) for instr in only.instructions]
    memory = Functional(program).gm
    return ProgramImage(np.array(words, np.uint64), memory, tensors, texts.texts, lines)


def only_core(program: Program) -> Core:
    """Return the only core with instructions.

    Raises
    ------
    ValueError
        If several cores have some, or none has.
    """
    cores = [core for core in program if core.instructions]
    if len(cores) != 1:
        raise ValueError(
            f"a program in machine code must be for one core, not for {len(cores)}; "
            "--blocks or --cores can be 1"
        )
    return cores[0]
