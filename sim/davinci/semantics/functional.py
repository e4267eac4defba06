"""Instructions carried out on NumPy memories."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from vitruvian.sim.davinci.chip.model import GM
from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.isa.operands import DTYPES, View
from vitruvian.sim.davinci.program.program import Core, Program

from .matrix import CUBES, Product, golden_product, matrix_product
from .memory import FunctionalError, Memory
from .moves import MOVES
from .vectors import VECTORS

__all__ = ["COMPILE_AFTER", "Functional"]

#: Vector instructions after which compiled code takes those that it has.
COMPILE_AFTER = 1000

_NOTHING = frozenset(
    (
        "scalar",
        "scalar_load",
        "set_mask",
        "set_control",
        "set_flag",
        "wait_flag",
        "pipe_barrier",
        "cross_set",
        "cross_wait",
    )
)


class Functional:
    """The data of a program, and what its instructions do to them.

    Parameters
    ----------
    program : Program
    cube : {"golden", "fast", "rtl"} or callable
        How mmad computes: golden to the bit in `preset`; "fast" by FP32 BLAS, each sum off by at
        most (K + 1)·2⁻²⁴·(|C| + Σ|A·B|); "rtl" by the compiled unit; or a `Product` of your own.
    preset : str
        Accuracy preset of the golden Cube.

    Attributes
    ----------
    gm : ndarray of uint8
        Global memory: the program's tensors, with their data where it has some, else zero.
    vectors : int
        Vector instructions so far.

    Raises
    ------
    ValueError
        For a `cube` that is none.
    """

    def __init__(self, program: Program, cube: str | Product = "golden", preset: str = "ieee"):
        self.program = program
        if callable(cube):
            self._product = cube
        elif cube == "golden":
            self._product = golden_product(preset)
        elif cube in CUBES:
            self._product = CUBES[cube]()
        else:
            raise ValueError(f"cube must be one of {', '.join(CUBES)} or a function, not {cube!r}")
        self.gm = np.zeros(program.gm_bytes, np.uint8)
        for name, data in program.data.items():
            view = program.tensors[name]
            self.gm[view.offset : view.offset + view.nbytes] = np.frombuffer(
                data.tobytes(), np.uint8
            )
        self._memories: dict[tuple[str, int], Memory] = {}
        self.vectors = 0

    def memory(self, core: Core) -> Memory:
        """The buffers of a core."""
        key = (core.kind.name, core.index)
        if key not in self._memories:
            own = {b.name: np.zeros(b.nbytes, np.uint8) for b in core.kind.buffers.values()}
            self._memories[key] = Memory({GM: self.gm, **own})
        return self._memories[key]

    def execute(self, core: Core, one: Instruction) -> None:
        """Carry out one instruction of a core.

        Raises
        ------
        FunctionalError
            When it reaches outside a buffer, or does what is not modelled.
        """
        op = one.op
        if op in _NOTHING:
            return
        memory = self.memory(core)
        try:
            if op == "mmad":
                matrix_product(memory, one, self._product)
            elif op in VECTORS:
                self._vector(memory, one)
            elif op in MOVES:
                MOVES[op](memory, one)
            elif op == "scalar_store":
                dst = one.operands["dst"]
                memory.at(dst, (), ())[...] = np.asarray(one.fields["value"])
            else:
                raise FunctionalError(one, "what this operation computes is not modelled")
        except (IndexError, TypeError, OverflowError) as error:
            raise FunctionalError(one, str(error)) from None

    def _vector(self, memory: Memory, one: Instruction) -> None:
        """With the compiled twin once there are many: loading it takes its time."""
        self.vectors += 1
        if self.vectors > COMPILE_AFTER:
            from .vectors_compiled import compiled

            if compiled(memory, one):
                return
        VECTORS[one.op](memory, one)

    def run(self) -> None:
        """Carry out the whole program, core after core, each in program order.

        That is the result of every run in which cores do not wait for each other and no race
        decides anything.
        """
        for core in self.program:
            for one in core.instructions:
                self.execute(core, one)

    def read(self, what: str | View, core: Core | None = None) -> np.ndarray:
        """A copy of what a tensor or a view holds; of a core's own buffer with the core.

        Raises
        ------
        KeyError, ValueError
            For a name that is no tensor's, and a core's buffer without the core.
        """
        view = self.program.tensors[what] if isinstance(what, str) else what
        return self._memory_of(view, core).elements(view).copy()

    def write(self, what: str | View, data: Any, core: Core | None = None) -> None:
        """Put data into a tensor or a view."""
        view = self.program.tensors[what] if isinstance(what, str) else what
        elements = self._memory_of(view, core).elements(view)
        elements[...] = np.asarray(data).astype(DTYPES[view.dtype])

    def _memory_of(self, view: View, core: Core | None) -> Memory:
        if view.buffer == GM:
            return Memory({GM: self.gm})
        if core is None:
            raise ValueError(f"core must be given for a view into {view.buffer}")
        return self.memory(core)

    def tensors(self) -> Mapping[str, np.ndarray]:
        """What all tensors hold, by name."""
        return {name: self.read(name) for name in self.program.tensors}
