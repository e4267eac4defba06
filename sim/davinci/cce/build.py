"""Turn a kernel and its arguments into a program for the cores of a chip."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from vitruvian.golden.vector.formats import DTYPES
from vitruvian.sim.davinci.cce.sink.context import GM_BASE
from vitruvian.sim.davinci.cce.sink.program import ProgramSink
from vitruvian.sim.davinci.cce.sink.scheduler import Scheduler
from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.davinci.program.program import Program

from ..semantics import Functional, Product
from .kernel import LIMIT, CceKernel, KernelParameter, check_names

_NAMES = {dtype: name for name, dtype in DTYPES.items() if name != "bf16"}


def build(
    kernel: CceKernel,
    chip: Chip,
    arguments: Mapping[str, Any],
    *,
    blocks: int = 1,
    kind: str | None = None,
    execute: bool = True,
    cube: str | Product = "golden",
    limit: int = LIMIT,
) -> tuple[Program, Functional | None]:
    """Run a kernel on every core and record the instructions that it issues.

    The cores run one after the other, but a core that waits for another core lets that core run
    first.

    Parameters
    ----------
    kernel : CceKernel
        The kernel.
    chip : Chip
        The chip whose cores run the kernel.
    arguments : mapping of str to ndarray or number
        The arguments by parameter name. An array becomes a tensor in global memory with the same
        content and dtype; the ``Functional`` holds what the kernel writes there. None or 0 instead
        of an array is a null pointer.
    blocks : int
        The number of blocks, 1 to 65535. If it exceeds the number of cores, the blocks run in
        rounds (see ``Program``).
    kind : str, optional
        The kind of core; by default the only kind of the chip.
    execute : bool
        If True, execute each instruction when it is issued, so that the kernel can read its data.
    cube : {"golden", "fast"} or callable
        The arithmetic of matrix products, as for ``Functional``.
    limit : int
        The most steps of each core.

    Returns
    -------
    program : Program
        The recorded instructions.
    functional : Functional or None
        The memories as the kernel left them; None if ``execute`` is False. If there are more
        blocks than cores, only global memory is left, because a core's next block overwrites its
        buffers.

    Raises
    ------
    ValueError
        If the arguments do not fit, or the kernel makes a mistake (with its position).
    """
    program = Program(chip, kernel.name, blocks=blocks)
    program.sources |= kernel.sources
    values = place_arguments(program, kernel.parameters, arguments)
    functional = Functional(program, cube) if execute else None
    scheduler, tasks = Scheduler(), []
    # In rounds, the next block finds the buffers of its core as new; without rounds they stay
    # readable.
    rounds = blocks > chip.kind(kind).count
    for index in range(blocks):
        core = program.core(index, kind)
        sink = ProgramSink(core, functional, scheduler)
        options = {"block_idx": index, "block_num": blocks, "limit": limit}
        tasks.append((core, partial(_run, kernel, sink, values, release=rounds, **options)))
    scheduler.run(tasks)
    return program, functional


def build_mixed(
    kernels: Mapping[str, CceKernel],
    chip: Chip,
    arguments: Mapping[str, Any],
    *,
    blocks: int = 1,
    limit: int = LIMIT,
) -> Program:
    """Build a program from a kernel that runs on cores of several kinds.

    The cores may wait for each other. A scalar load sees what other cores wrote before they set
    the flags that the loading core has waited for.

    Parameters
    ----------
    kernels : mapping of str to CceKernel
        The kernel of each kind of core: the same source, read with the macros of that kind. All
        kernels must have the same parameters.
    chip : Chip
        The chip whose cores run the kernels.
    arguments : mapping of str to ndarray or number
        The arguments by parameter name, as for ``build``.
    blocks : int
        The number of blocks, 1 to 65535; a group of cores runs a block, with every core of each
        kind. If there are more blocks than groups, they run in rounds (see ``Program``).
    limit : int
        The most steps of each core.

    Returns
    -------
    Program
        The recorded instructions; ``simulate`` computes their results.

    Raises
    ------
    ValueError
        As for ``build``; also if ``kernels`` is empty or the kernels' parameters differ.
    """
    if not kernels:
        raise ValueError("kernels must name at least one kind of core")
    first = next(iter(kernels.values()))
    if any(k.parameters != first.parameters for k in kernels.values()):
        raise ValueError("kernels must all have the same parameters")
    program = Program(chip, first.name, blocks=blocks)
    for kernel in kernels.values():
        program.sources |= kernel.sources
    values = place_arguments(program, first.parameters, arguments)
    # These results only steer the control flow of the kernels; ``simulate`` computes those that
    # count.
    functional = Functional(program, "fast")
    scheduler, tasks = Scheduler(), []
    for kind, kernel in kernels.items():
        cores = chip.kind(kind).per_group
        for index in range(blocks * cores):
            core = program.core(index, kind)
            sink = ProgramSink(core, functional, scheduler)
            block, sub = divmod(index, cores)
            registers = {"subblockid": sub, "subblockdim": cores}
            options = {"block_idx": block, "block_num": blocks, "limit": limit}
            task = partial(_run, kernel, sink, values, registers=registers, **options)
            tasks.append((core, task))
    scheduler.run(tasks)
    return program


def _run(
    kernel: CceKernel,
    sink: ProgramSink,
    values: Mapping[str, Any],
    *,
    release: bool = True,
    **options,
) -> None:
    """Run a kernel on a core; with ``release``, forget the core's buffers afterwards."""
    kernel.run(sink, values, **options)
    if release and sink.functional is not None:
        sink.functional.release(sink.core)
    # Instructions that the simulator appends later do not come from a line of the kernel.
    sink.core.position = None


def place_arguments(
    program: Program, parameters: Sequence[KernelParameter], arguments: Mapping[str, Any]
) -> dict[str, int | float]:
    """Return the kernel's arguments: the address of a new tensor for an array, else the number.

    Raises
    ------
    ValueError
        If the arguments do not fit the parameters.
    """
    names = [p.name for p in parameters]
    check_names(arguments, names)
    values: dict[str, int | float] = {}
    for parameter in parameters:
        value = arguments[parameter.name]
        if not parameter.is_pointer:
            values[parameter.name] = value
            continue
        if value is None or (isinstance(value, int) and value == 0):
            values[parameter.name] = 0  # a null pointer has no tensor
            continue
        array = np.ascontiguousarray(value)
        if not isinstance(value, np.ndarray) or array.dtype not in _NAMES:
            raise ValueError(
                f"{parameter.name} must be an array with a dtype of the vector unit, or None"
            )
        # NumPy has no bf16: its codes come as uint16, and the parameter says what they are.
        dtype = "bf16" if parameter.dtype == "bf16" else _NAMES[array.dtype]
        tensor = program.tensor(parameter.name, array.shape, dtype, array)
        # Global memory begins above 0, so that no tensor has the address of a null pointer.
        values[parameter.name] = GM_BASE + tensor.offset
    return values
