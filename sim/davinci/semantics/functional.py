"""Instructions carried out on NumPy memories."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from vitruvian.common.compiling import tell_on_terminal
from vitruvian.sim.davinci.chip.model import GM
from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.isa.operands import DTYPES, View
from vitruvian.sim.davinci.program.program import Core, Program

from .matrix import CUBES, Product, golden_product, matrix_product
from .memory import FunctionalError, Memory
from .moves import MOVES
from .vectors import VECTORS

#: Number of vector instructions after which compiled code carries out those that it can.
COMPILE_AFTER = 1000

_NOTHING = frozenset(
    (
        "scalar",
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
    """The data of a program, which its instructions change.

    Parameters
    ----------
    cube : {"golden", "fast", "rtl"} or callable
        How mmad computes: "golden" is bit-exact in ``preset``; "fast" uses BLAS in FP32, with an
        error of each sum of at most (K + 1)·2⁻²⁴·(|C| + Σ|A·B|); "rtl" uses the compiled unit;
        a ``Product`` of your own is called.
    preset : str
        Accuracy preset of the golden Cube; others ignore it.
    expected : bool
        If False, scalar loads are not compared with the elements that the program expects.

    Attributes
    ----------
    gm : ndarray of uint8
        Global memory: the program's tensors with their data, or with zeros if they have none.
    cube : str or callable
        As given.
    vectors : int
        Number of vector instructions that have been carried out.

    Raises
    ------
    ValueError
        If there is no such ``cube``.
    """

    def __init__(
        self,
        program: Program,
        cube: str | Product = "golden",
        preset: str = "ieee",
        *,
        expected: bool = True,
    ):
        self.program = program
        self.cube = cube
        self._expected = expected
        if callable(cube):
            self._product = cube
        elif cube == "golden":
            self._product = golden_product(preset)
        elif cube in CUBES:
            self._product = CUBES[cube]()
        else:
            raise ValueError(f"cube must be one of {', '.join(CUBES)} or a function, not {cube!r}")
        tell_on_terminal()
        self.gm = np.zeros(program.gm_bytes, np.uint8)
        for name, data in program.data.items():
            view = program.tensors[name]
            self.gm[view.offset : view.offset + view.nbytes] = np.frombuffer(
                data.tobytes(), np.uint8
            )
        self._memories: dict[tuple[str, int], Memory] = {}
        self.vectors = 0

    def memory(self, core: Core) -> Memory:
        """Return the buffers of a core."""
        key = (core.kind.name, core.index)
        if key not in self._memories:
            # The device leaves buffers as they are at the start. Zeros make runs repeatable; the
            # checks find reads of what nobody wrote.
            own = {b.name: np.zeros(b.nbytes, np.uint8) for b in core.kind.buffers.values()}
            self._memories[key] = Memory({GM: self.gm, **own})
        return self._memories[key]

    def release(self, core: Core) -> None:
        """Forget the buffers of a core that has executed its last instruction."""
        self._memories.pop((core.kind.name, core.index), None)

    def execute(self, core: Core, instr: Instruction) -> None:
        """Carry out one instruction of a core.

        Raises
        ------
        FunctionalError
            If the instruction reaches outside a buffer, or its operation is not modelled.
        """
        op = instr.op
        if op in _NOTHING:
            return
        memory = self.memory(core)
        try:
            if op == "mmad":
                matrix_product(memory, instr, self._product)
            elif op in VECTORS:
                self._vector(memory, instr)
            elif op in MOVES:
                MOVES[op](memory, instr)
            elif op == "scalar_load":
                if self._expected:
                    _compare_load(memory, instr)
            elif op == "scalar_store":
                dst = instr.operands["dst"]
                memory.at(dst, (), ())[...] = np.asarray(instr.fields["value"])
            else:
                raise FunctionalError(instr, "the data of this operation are not modelled")
        except (IndexError, TypeError, OverflowError) as error:
            raise FunctionalError(instr, str(error)) from None

    def _vector(self, memory: Memory, instr: Instruction) -> None:
        """Carry out a vector instruction, with the compiled twin after the first thousand.

        Loading compiled code takes longer than a short program.
        """
        self.vectors += 1
        if self.vectors > COMPILE_AFTER:
            from .vectors_compiled import compiled

            if compiled(memory, instr):
                return
        VECTORS[instr.op](memory, instr)

    def run(self) -> None:
        """Carry out the whole program, core after core, each in program order.

        Every timed run has the same result if cores do not wait for each other and the program
        has no race.
        """
        for core in self.program:
            for instr in core.instructions:
                self.execute(core, instr)

    def read(self, what: str | View, core: Core | None = None) -> np.ndarray:
        """Return a copy of the elements of a tensor or a view.

        Parameters
        ----------
        what : str or View
            Name of a tensor, or a view.
        core : Core, optional
            The core whose buffer a view is in; needed unless that is global memory.

        Raises
        ------
        KeyError
            If no tensor has the name.
        ValueError
            If a view is in a core's buffer and the core is missing.
        """
        view = self.program.tensors[what] if isinstance(what, str) else what
        return self._memory_of(view, core).elements(view).copy()

    def write(self, what: str | View, data: Any, core: Core | None = None) -> None:
        """Write data into a tensor or a view; ``what`` and ``core`` are those of ``read``."""
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
        """Return copies of all tensors by name."""
        return {name: self.read(name) for name in self.program.tensors}


def _compare_load(memory: Memory, instr: Instruction) -> None:
    """Compare the element with the one that the program was built for, if it says one."""
    expected = instr.fields.get("expected")
    if expected is None:
        return
    element = memory.at(instr.operands["src"], (), ())
    # Bytes, so that −0 differs from +0 and a NaN equals itself: a branch may depend on either.
    if element.tobytes() != np.asarray(expected).astype(element.dtype).tobytes():
        shown = f"{element.item()!r}, not {np.asarray(expected).item()!r}"
        raise FunctionalError(instr, f"the loaded element is {shown}, which the program expects")
