"""Programs of the element-wise core to the bit: their instructions, and their execution.

The core has N lanes and a file of vector registers with a number for each lane. A *step* runs one
program of the store, from its first instruction to one that is marked as the end, on up to N
elements of each vector. Registers keep their values from one step to the next.

References
----------
Zhang 2024, §4.4.3.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from vitruvian.common.validate import check_int, one_of
from vitruvian.golden.fp.arith import compare
from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.fp.formats import FloatFormat, as_format
from vitruvian.golden.sparse.names import OPERATIONS
from vitruvian.golden.sparse.operators import combine, truth

#: Operations with two operands a and b, element by element.
BINARY = ("equal", "add", "sub", "mul", "less", "min", "max", "and", "or")
#: Input streams in the order of their numbers: the product of the OS core, and other vectors.
INPUTS = ("x", "v")
#: Output streams in the order of their numbers: the vector for the IS core, and other results.
OUTPUTS = ("y", "w")


@dataclass(frozen=True, kw_only=True)
class SparseInstruction:
    """An instruction of the element-wise core.

    Attributes
    ----------
    op : str
        One of ``OPERATIONS``:

        - ``load``: register d takes the next item of the input stream a.
        - ``store``: the output stream d gets register a.
        - ``copy``, ``abs``, ``not``: d = a, a without its sign, or 1 if a is not true and else 0.
        - ``exchange``: lane k of d gets lane ``k xor 2**b`` of a, or lane k if there is none such.
        - ``where``: d = b in the lanes in which a is true.
        - ``equal``, ``less``, ``and``, ``or``: d = 1 if it holds for a and b, otherwise 0.
        - ``add``, ``sub``, ``mul``, ``min``, ``max``: d = a ∘ b, rounded once (RNE).
    d, a, b : int
        Numbers of registers, or of streams.
    end : bool
        True if the program ends with this instruction.
    """

    op: str
    d: int = 0
    a: int = 0
    b: int = 0
    end: bool = False

    def __post_init__(self) -> None:
        one_of("op", self.op, OPERATIONS)
        check_int("d", self.d, 0, 1 if self.op == "store" else None)
        check_int("a", self.a, 0, 1 if self.op == "load" else None)
        check_int("b", self.b, 0)


@dataclass(frozen=True, kw_only=True)
class ProgramWrite:
    """A command that writes an instruction to the program store.

    Attributes
    ----------
    address : int
    instruction : SparseInstruction
    """

    address: int
    instruction: SparseInstruction


@dataclass(frozen=True, kw_only=True, eq=False)
class ProgramStep:
    """A command that runs a program.

    Attributes
    ----------
    address : int
        Address of the program's first instruction.
    present : (N,) ndarray of bool
        Lanes with an element.
    """

    address: int
    present: np.ndarray


@dataclass(frozen=True, eq=False)
class ProgramOutcome:
    """The state that a sequence of commands leaves.

    Attributes
    ----------
    registers : (R, N) ndarray of unsigned int
    values : dict of str to (S, N) ndarray of unsigned int
        The items of each output stream.
    present : dict of str to (S, N) ndarray of bool
        The lanes of each item that had an element.
    count : int
        Number of executed instructions.
    """

    registers: np.ndarray
    values: dict[str, np.ndarray]
    present: dict[str, np.ndarray]
    count: int


def _computed(i: SparseInstruction, registers: np.ndarray, f: FloatFormat) -> np.ndarray:
    """Return the result of an instruction that computes, in all lanes."""
    a, b = registers[i.a], registers[i.b % len(registers)]
    one = code_dtype(f).type(f.bias << f.fraction_bits)
    if i.op == "copy":
        return a
    if i.op == "abs":
        return a & ~a.dtype.type(f.sign_mask)
    if i.op == "not":
        return np.where(truth(a, f), 0, one).astype(a.dtype)
    if i.op == "exchange":
        lanes = np.arange(len(a))
        return a[lanes ^ 1 << i.b] if 1 << i.b < len(a) else a
    if i.op == "where":
        return np.where(truth(a, f), b, registers[i.d])  # pyright: ignore[reportUnknownVariableType]
    if i.op in ("less", "equal"):
        return np.where(compare(a, b, f) == (-1 if i.op == "less" else 0), one, 0).astype(a.dtype)
    return combine(i.op, a, b, f)


def run(
    commands: Iterable[ProgramWrite | ProgramStep],
    registers: np.ndarray,
    inputs: Mapping[str, np.ndarray],
    format: FloatFormat | str,
) -> ProgramOutcome:
    """Carry out commands, one instruction after the other.

    An instruction changes the lanes of register d in which the step has an element. Other lanes
    keep their values. An exchange reads all lanes.

    Parameters
    ----------
    registers : (R, N) ndarray of unsigned int, ``format`` codes
        Registers before the first step; N is a power of two.
    inputs : dict of str to (T, N) ndarray of unsigned int
        Items of the streams in ``INPUTS``. A load takes a whole item, whatever lanes it writes.
    format : FloatFormat or str
        One of ``operators.FORMATS``.

    Returns
    -------
    ProgramOutcome

    Raises
    ------
    ValueError
        If a step needs an instruction that was not written, or a stream has too few items.
    """
    f = as_format(format)
    registers = registers.astype(code_dtype(f))
    store: dict[int, SparseInstruction] = {}
    given = {name: iter(inputs.get(name, ())) for name in INPUTS}
    results: dict[str, list[np.ndarray]] = {name: [] for name in OUTPUTS}
    masks: dict[str, list[np.ndarray]] = {name: [] for name in OUTPUTS}
    count = 0
    for command in commands:
        if isinstance(command, ProgramWrite):
            store[command.address] = command.instruction
            continue
        address, end = command.address, False
        while not end:
            i = store.get(address)
            if i is None:
                raise ValueError(f"address must be that of a written instruction, not {address}")
            count, address, end = count + 1, address + 1, i.end
            if i.op == "store":
                results[OUTPUTS[i.d]].append(registers[i.a].copy())
                masks[OUTPUTS[i.d]].append(command.present)
                continue
            if i.op == "load":
                value = next(given[INPUTS[i.a]], None)
                if value is None:
                    raise ValueError(f"{INPUTS[i.a]} must have an item for each load")
            else:
                value = _computed(i, registers, f)
            registers[i.d] = np.where(command.present, value, registers[i.d])
    shape = (-1, registers.shape[1])
    values = {
        name: np.array(items, registers.dtype).reshape(shape) for name, items in results.items()
    }
    present = {name: np.array(items, bool).reshape(shape) for name, items in masks.items()}
    return ProgramOutcome(registers, values, present, count)
