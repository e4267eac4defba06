"""The programs that mutants of a core run: random ones, kernels of the project, and faults."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .design import MEMORY_BYTES

_BLOCK = 32
#: Bytes of memory up to which a program runs twice, because a start must clear the core's state.
_SHORT = 10_000
#: Random illegal programs of each kind.
_ILLEGAL = 4
#: Kernels and their sizes (None: the default).
KERNELS: tuple[tuple[str, Any], ...] = (
    ("cce-cube", (32, 32, 32)),
    ("matmul", (32, 48, 32)),
    ("conv2d", (1, 16, 6, 16, 3, 1)),
    ("maxpool-im2col", None),
    ("maxpool-backward-im2col", None),
    ("avgpool-im2col", None),
    ("cce-softmax", None),
    ("maxpool-argmax-im2col", None),
    ("cce-scale-add", None),
)


@dataclass(frozen=True, eq=False)
class Killer:
    """A program in machine code.

    Attributes
    ----------
    name : str
    memory : (bytes,) ndarray of uint8
        Global memory at the start.
    words : (N,) ndarray of uint64
    expected : (bytes,) ndarray of uint8, or None
        Global memory at the end in the functional simulator, or what a program with a fault leaves;
        None if only a run tells.
    fault : int
        The fault that it ends with.
    runs : int
        How often it runs without a reset in between. Memory is written anew before each run.
    """

    name: str
    memory: np.ndarray
    words: np.ndarray
    expected: np.ndarray | None
    fault: int = 0
    runs: int = 1


def killers(config: Any, count: int) -> Iterator[Killer]:
    """Yield the programs for a core: faults, kernels, and random ones.

    Parameters
    ----------
    count : int
        Number of random programs whose instructions follow each other. There are half as many
        whose units overlap.
    """
    from vitruvian.sim.davinci import load_chip
    from vitruvian.sim.davinci.machine_code.encode import EncodingError
    from vitruvian.sim.davinci.machine_code.overlapping_programs import OverlappingProgram
    from vitruvian.sim.davinci.machine_code.random_programs import RandomProgram
    from vitruvian.sim.kernels import KERNELS as ALL

    yield from faults(config)
    for name, size in KERNELS:
        program = ALL[name].build(size, chip=load_chip("ascend310"), cores=1).program
        try:
            killer = _of(program, config, name)
        except EncodingError:  # another preset has what it needs
            continue
        if len(killer.memory) + 8 * len(killer.words) < MEMORY_BYTES - 8 * _BLOCK:
            yield killer
    for seed in range(count):
        if seed % 2 == 0:
            program = OverlappingProgram(seed // 2, config).program
            yield _of(program, config, f"overlapping {seed // 2}")
        yield _of(RandomProgram(seed, config).program, config)


def _of(program: Any, config: Any, name: str = "", fault: int = 0) -> Killer:
    from vitruvian.sim.davinci.machine_code.core import assemble, core_product, only_core
    from vitruvian.sim.davinci.machine_code.encode import Texts
    from vitruvian.sim.davinci.semantics import Functional

    words = assemble(only_core(program).instructions, config, Texts())
    before = Functional(program).gm.copy()
    functional = Functional(program, core_product(config))
    if not fault:
        functional.run()
    after = functional.gm.copy()
    runs = 2 if not fault and len(before) <= _SHORT else 1
    return Killer(name or program.name, before, np.array(words, np.uint64), after, fault, runs)


def faults(config: Any) -> Iterator[Killer]:
    """Yield the programs that stop a core; the numbers are those of ``hdl.core.fetch.Fault``."""
    from vitruvian.golden.core import ENCODINGS
    from vitruvian.golden.core.encoding import BUFFERS, DTYPES, UNITS
    from vitruvian.hdl.core.faults import Fault
    from vitruvian.sim.davinci import Program, Unit, load_chip
    from vitruvian.sim.davinci.machine_code.illegal_programs import KINDS, illegal_program

    program = Program(load_chip("ascend310"))
    core = program.core()
    for _ in range(2):
        core.set_flag(Unit.V, Unit.MTE3, 0)
    yield _of(program, config, "a flag set twice", 2)
    for place in (2, 3):
        program = Program(load_chip("ascend310"))
        x = program.tensor("x", (4,), "fp16", np.arange(4, dtype=np.float16))
        program.core().scalar_load(x[place : place + 1], expected=2.0)
        yield _of(program, config, f"a scalar load of element {place}", 0 if place == 2 else 3)
    empty = np.zeros(_BLOCK, np.uint8)
    words = np.array([0x0B | 6 << 8 | 4 << 11, 0, 0, 0, 0], np.uint64)  # a copy of unit FIX
    yield Killer("a word for a unit that is missing", empty, words, empty, 1)
    v, dtype = UNITS.index("V"), DTYPES.index("fp32")
    one_missing = len(config.units)  # the number of a unit behind those of the core
    flag = {"unit": v, "source": v, "target": one_missing, "register": 0}
    place = {"unit": v, "dst": 2, "repeat": 1, "dst.buffer": BUFFERS.index("UB")}
    place |= {"src.buffer": place["dst.buffer"], "src.dtype": dtype, "dst.dtype": dtype}
    for name, op, values, fault in (
        ("a flag for a unit that is missing", "set_flag", flag, Fault.CODE),
        ("a maximum of FP32 at two bytes", "vcmax", place, Fault.ALIGN),
    ):
        if op == "vcmax" and "reduce" not in config.vector.groups:
            continue
        words = np.array(ENCODINGS[op].pack(values), np.uint64)
        yield Killer(name, empty, words, empty, fault.value)
    for seed in range(_ILLEGAL * len(KINDS)):
        illegal = illegal_program(seed, config)
        if len(illegal.memory) + 8 * len(illegal.words) < MEMORY_BYTES - 8 * _BLOCK:
            name = f"illegal {seed} ({illegal.kind})"
            yield Killer(name, illegal.memory, illegal.words, None, Fault[illegal.fault].value)
