"""The streams of a compiled program: tensors as items of N lanes, and back."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.golden.fp.codec import code_dtype, to_float
from vitruvian.golden.fp.convert import from_float
from vitruvian.golden.fp.formats import FloatFormat, as_format
from vitruvian.golden.sparse.compiler import SparseProgram
from vitruvian.golden.sparse.graph import Operand
from vitruvian.golden.sparse.programs import INPUTS, ProgramOutcome, ProgramStep, ProgramWrite, run


def _codes(values: Any, f: FloatFormat) -> np.ndarray:
    return np.asarray(from_float(np.asarray(values, np.float64), f), code_dtype(f))


def streams(
    program: SparseProgram,
    tensors: Mapping[str, Any],
    *,
    lanes: int = 8,
    format: FloatFormat | str = "fp32",
) -> tuple[list[ProgramWrite | ProgramStep], dict[str, np.ndarray]]:
    """Return the commands that load and run a program, and the items of the core's inputs.

    Parameters
    ----------
    tensors : dict of str to array_like of float
        Scalars and vectors of one length, which are rounded to ``format`` (RNE).
    lanes : int
        Lanes of the core.

    Returns
    -------
    commands : list of ProgramWrite or ProgramStep
    inputs : dict of str to (T, N) ndarray of unsigned int
        Items of x and v. A scalar is in all lanes, and lanes without an element are +0.

    Raises
    ------
    ValueError
        If a vector does not have one number per element, or lengths differ.
    """
    f = as_format(format)
    names = [*([program.product] if program.product is not None else []), *program.vectors]
    vectors = {name: _codes(tensors[name], f) for name in names}
    shapes = {vector.shape for vector in vectors.values()}
    if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
        raise ValueError(f"vectors must have one length, not the shapes {sorted(shapes)}")
    count = shapes.pop()[0] if shapes else 0
    items = ceil_div(count, lanes)
    padded: dict[str, np.ndarray] = {}
    for name, vector in vectors.items():
        padded[name] = np.zeros((items, lanes), vector.dtype)
        padded[name].reshape(-1)[:count] = vector

    def scalar(operand: Operand) -> np.ndarray:
        value = tensors[operand] if isinstance(operand, str) else operand
        return np.broadcast_to(_codes(value, f), (1, lanes))

    constants = [scalar(operand) for operand in program.constants]
    others = np.stack([padded[name] for name in program.vectors], 1) if program.vectors else None
    v = [*constants, *([others.reshape(-1, lanes)] if others is not None else [])]
    empty = np.zeros((0, lanes), code_dtype(f))
    inputs = {
        "x": padded[program.product] if program.product is not None else empty,
        "v": np.concatenate(v) if v else empty,
    }
    everyone = np.ones(lanes, bool)
    commands: list[ProgramWrite | ProgramStep] = [
        ProgramWrite(address=address, instruction=instruction)
        for address, instruction in enumerate(program.store)
    ]
    if program.prologue is not None:
        commands.append(ProgramStep(address=program.prologue, present=everyone))
    if program.body is not None:
        places = np.arange(items * lanes).reshape(items, lanes) < count
        commands += [ProgramStep(address=program.body, present=present) for present in places]
    if program.epilogue is not None:
        commands.append(ProgramStep(address=program.epilogue, present=everyone))
    assert set(inputs) == set(INPUTS)
    return commands, inputs


def collect(
    program: SparseProgram, values: Mapping[str, np.ndarray], count: int, format: FloatFormat | str
) -> dict[str, Any]:
    """Return the tensors that a program has stored.

    Parameters
    ----------
    values : dict of str to (S, N) ndarray of unsigned int
        Items of y and w.
    count : int
        Elements of the vectors.

    Returns
    -------
    dict of str to ndarray of float64
    """
    numbers = {name: to_float(items, format) for name, items in values.items()}
    tensors: dict[str, Any] = {}
    scalars = len(program.scalars)
    w = numbers["w"][: len(numbers["w"]) - scalars]
    for place, name in enumerate(program.results):
        tensors[name] = w[place :: len(program.results)].reshape(-1)[:count]
    for place, name in enumerate(program.scalars):
        tensors[name] = numbers["w"][len(w) + place, 0]
    if program.vector is not None:
        tensors[program.vector] = numbers["y"].reshape(-1)[:count]
    return tensors


def execute_program(
    program: SparseProgram,
    tensors: Mapping[str, Any],
    *,
    lanes: int = 8,
    format: FloatFormat | str = "fp32",
) -> tuple[dict[str, Any], ProgramOutcome]:
    """Run a program on tensors as the core would, and return the stored ones and the outcome."""
    commands, inputs = streams(program, tensors, lanes=lanes, format=format)
    registers = np.zeros((max(program.registers, 1), lanes), code_dtype(format))
    outcome = run(commands, registers, inputs, format)
    named = [*([program.product] if program.product is not None else []), *program.vectors]
    count = len(np.asarray(tensors[named[0]])) if named else 0
    return collect(program, outcome.values, count, format), outcome
