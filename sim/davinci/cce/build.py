"""A kernel and its arguments to a program for the cores of a chip."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from vitruvian.sim.davinci.cce.sink.program import GM_BASE, ProgramSink
from vitruvian.sim.davinci.cce.sink.scheduler import Turns
from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.davinci.isa.operands import DTYPES
from vitruvian.sim.davinci.program.program import Program

from ..semantics import Functional, Product
from .kernel import LIMIT, Kernel

__all__ = ["build", "build_mixed"]

_NAMES = {dtype: name for name, dtype in DTYPES.items() if name != "bf16"}


def build(
    kernel: Kernel,
    chip: Chip,
    arguments: Mapping[str, Any],
    *,
    blocks: int = 1,
    kind: str | None = None,
    execute: bool = True,
    cube: str | Product = "golden",
    limit: int = LIMIT,
) -> tuple[Program, Functional | None]:
    """Run a kernel for every core, and keep what it did.

    Cores run one after the other, but one that waits for others lets them go on first.

    Parameters
    ----------
    kernel : Kernel
    chip : Chip
    arguments : mapping of str to ndarray or number
        By the parameters' names. An array becomes a tensor in global memory with that content, of
        its own dtype; what the kernel writes there is found in the `Functional`. None (or 0) in the
        place of one is a null pointer.
    blocks : int
        Cores that run it.
    kind : str, optional
        Of the chip's cores; its only one by default.
    execute : bool
        Carry instructions out, so that the kernel can look at its data.
    cube : {"golden", "fast"} or callable
        As `Functional` takes it.
    limit : int
        Steps of each core.

    Returns
    -------
    program : Program
    functional : Functional or None
        With the data as the kernel left them; None without `execute`.

    Raises
    ------
    ValueError
        For arguments that do not fit, and for a mistake in the kernel, with its place.
    """
    program = Program(chip, kernel.name)
    values = _values(program, kernel, arguments)
    functional = Functional(program, cube) if execute else None
    turns, works = Turns(), []
    for index in range(blocks):
        core = program.core(index, kind)
        sink = ProgramSink(core, functional, turns)
        options = {"block_idx": index, "block_num": blocks, "limit": limit}
        works.append((core, partial(_run, kernel, sink, values, **options)))
    turns.run(works)
    return program, functional


def build_mixed(
    kernels: Mapping[str, Kernel],
    chip: Chip,
    arguments: Mapping[str, Any],
    *,
    blocks: int = 1,
    limit: int = LIMIT,
) -> Program:
    """A kernel that runs on cores of several kinds, which wait for each other.

    Parameters
    ----------
    kernels : mapping of str to Kernel
        By kind of core: the same source, read with the macros of each, with the same parameters.
    chip : Chip
    arguments : mapping of str to ndarray or number
        As of `build`.
    blocks : int
        Groups of cores that run it: of each kind as many as a group has.
    limit : int
        Steps of each core.

    Returns
    -------
    Program
        What it computes is for `simulate` to say; a scalar load gets what other cores have made
        before the flags that the core has waited for.

    Raises
    ------
    ValueError
        As of `build`; for kernels with different parameters, and for no kernel at all.
    """
    if not kernels:
        raise ValueError("kernels must be one at least, for a kind of core")
    first = next(iter(kernels.values()))
    if any(k.parameters != first.parameters for k in kernels.values()):
        raise ValueError("kernels must all have the same parameters")
    program = Program(chip, first.name)
    values = _values(program, first, arguments)
    functional = Functional(program, "fast")
    turns, works = Turns(), []
    for kind, kernel in kernels.items():
        cores = chip.kind(kind).per_group
        for index in range(blocks * cores):
            core = program.core(index, kind)
            sink = ProgramSink(core, functional, turns)
            block, sub = divmod(index, cores)
            registers = {"subblockid": sub, "subblockdim": cores}
            options = {"block_idx": block, "block_num": blocks, "limit": limit}
            work = partial(_run, kernel, sink, values, registers=registers, **options)
            works.append((core, work))
    turns.run(works)
    return program


def _run(kernel: Kernel, sink: ProgramSink, values: Mapping[str, Any], **options) -> None:
    kernel.run(sink, values, **options)
    sink.core.position = None


def _values(
    program: Program, kernel: Kernel, arguments: Mapping[str, Any]
) -> dict[str, int | float]:
    """Arguments as the kernel gets them: arrays become tensors, of which it gets the address."""
    names = [p.name for p in kernel.parameters]
    wrong = [n for n in arguments if n not in names] + [n for n in names if n not in arguments]
    if wrong:
        raise ValueError(f"arguments must be {', '.join(names)}; {wrong[0]!r} is not right")
    values: dict[str, int | float] = {}
    for parameter in kernel.parameters:
        value = arguments[parameter.name]
        if not parameter.is_pointer:
            values[parameter.name] = value
            continue
        if value is None or (isinstance(value, int) and value == 0):
            values[parameter.name] = 0  # no tensor at all: a null pointer
            continue
        array = np.ascontiguousarray(value)
        if not isinstance(value, np.ndarray) or array.dtype not in _NAMES:
            raise ValueError(f"{parameter.name} must be an array of a dtype of vectors, or None")
        dtype = "bf16" if parameter.dtype == "bf16" else _NAMES[array.dtype]
        tensor = program.tensor(parameter.name, array.shape, dtype, array)
        values[parameter.name] = GM_BASE + tensor.offset
    return values
