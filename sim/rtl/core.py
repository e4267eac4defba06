"""A program on the compiled core."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from vitruvian.common.validate import round_up

_BLOCK = 32
_WRITE, _START, _READ = range(3)
#: Cycles without a word from the core after which it counts as stopped.
_QUIET = 5_000_000
#: Bytes of global memory unless a program needs more: one model serves most programs.
_MEMORY = 1 << 20


@dataclass(frozen=True)
class CoreRun:
    """What a program did on the core.

    Attributes
    ----------
    outputs : dict of str to ndarray
        The final tensors by name.
    cycles : int
        Clock cycles from the start to the end.
    busy : dict of str to int
        Cycles in which each unit had an instruction.
    words : int
        Words of the program.
    """

    outputs: dict[str, np.ndarray]
    cycles: int
    busy: dict[str, int]
    words: int


def board(config: Any, memory_bytes: int, latency: int = 1) -> Any:
    """Return the compiled model of a core with its global memory."""
    from vitruvian.hdl.core import CoreBoard

    from . import compile_unit

    return compile_unit(CoreBoard, config=config, memory_bytes=memory_bytes, latency=latency)


def run_words(
    model: Any, memory: np.ndarray, words: np.ndarray
) -> tuple[np.ndarray, int, dict[str, int], int]:
    """Run words behind a memory image; return the memory, cycles, busy cycles and the fault."""
    from vitruvian.hdl.core.core import COUNTED

    start = round_up(len(memory), _BLOCK)
    image = np.zeros(round_up(start + 8 * len(words), _BLOCK), np.uint8)
    image[: len(memory)] = memory
    image[start : start + 8 * len(words)] = np.asarray(words, np.uint64).view(np.uint8)
    blocks, back = len(image) // _BLOCK, start // _BLOCK
    count = blocks + 1 + back
    kind = np.full(count, _WRITE, np.uint8)
    kind[blocks], kind[blocks + 1 :] = _START, _READ
    address = np.zeros(count, np.uint32)
    address[:blocks] = np.arange(blocks) * _BLOCK
    address[blocks], address[blocks + 1 :] = start, np.arange(back) * _BLOCK
    data = np.zeros((count, 4), np.uint64)
    data[:blocks] = image.view(np.uint64).reshape(blocks, 4)
    done = model.stream(
        inputs={"i": {"kind": kind, "address": address, "data": data}},
        outputs={"o": back},
        quiet_limit=_QUIET,
    )
    after = np.ascontiguousarray(done.outputs["o"]).view(np.uint8).reshape(-1)[: len(memory)]
    busy = {
        name: _number(done.ports[f"busy__{n}"])
        for n, name in enumerate(COUNTED)
    }
    return after, _number(done.ports["cycles"]), busy, _number(done.ports["fault"])


def core_product(config: Any) -> Any:
    """Return the product of the core's own tile, for the functional simulator."""
    from vitruvian.golden.cube import mmad

    def product(a, b, c, dtype_a, dtype_b, dtype_c):
        spec = config.tile.spec(dtype_a)
        short = -a.shape[1] % spec.k
        left, right = np.pad(a, [(0, 0), (0, short)]), np.pad(b, [(0, short), (0, 0)])
        return np.asarray(mmad(left, right, c, spec=spec)).astype(c.dtype)

    return product


def assemble(instructions: Any, config: Any, texts: Any) -> list[int]:
    """Return the words of instructions with the word 0 that ends them.

    Raises
    ------
    EncodingError
        If the core lacks an operation, a buffer is too small, or an instruction has no encoding.
    """
    from vitruvian.golden.core.encoding import ENCODINGS
    from vitruvian.hdl.core.support import refusal
    from vitruvian.sim.davinci.machine_code.encode import EncodingError, encode

    words: list[int] = []
    known: dict[tuple[int, ...], str | None] = {}
    for instr in instructions:
        these = encode(instr, texts)
        if these not in known:
            encoding = ENCODINGS[instr.op]
            values, _ = encoding.unpack(these)
            known[these] = refusal(config, encoding, instr.unit.name, values)
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


def run_program(program: Any, core: str | Any = "tiny", *, latency: int = 1) -> CoreRun:
    """Run the instructions of a program for one core on the compiled RTL.

    Raises
    ------
    EncodingError
        As ``assemble``.
    ValueError
        If the program is for several cores.
    RuntimeError
        If the core stops with a fault.
    """
    from vitruvian.hdl.core import CORES
    from vitruvian.sim.davinci.isa.operands import DTYPES
    from vitruvian.sim.davinci.machine_code.encode import Texts
    from vitruvian.sim.davinci.semantics import Functional

    config = CORES[core] if isinstance(core, str) else core
    cores = [c for c in program if c.instructions]
    if len(cores) != 1:
        raise ValueError(f"program must be for one core, not for {len(cores)}")
    words = assemble(cores[0].instructions, config, Texts())
    gm = Functional(program).gm
    need = round_up(len(gm), _BLOCK) + 8 * len(words) + 2 * _BLOCK
    memory = max(_MEMORY, 1 << (need - 1).bit_length())
    model = board(config, memory, latency)
    after, cycles, busy, fault = run_words(model, gm, np.array(words, np.uint64))
    if fault:
        raise RuntimeError(f"the core stopped with fault {fault}")
    outputs = {}
    for name, view in program.tensors.items():
        raw = after[view.offset : view.offset + view.nbytes]
        outputs[name] = raw.view(DTYPES[view.dtype]).reshape(view.shape).copy()
    return CoreRun(outputs, cycles, busy, len(words))


def _number(port: Any) -> int:
    return int(np.asarray(port).ravel()[0])
