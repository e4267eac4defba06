"""Run compiled kernels on every core and build the program of what they record."""

import struct
from collections.abc import Mapping
from functools import partial
from typing import Any

from vitruvian.sim.davinci.cce.build import place_arguments
from vitruvian.sim.davinci.cce.sink.scheduler import Scheduler
from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.davinci.program.program import Program
from vitruvian.sim.davinci.semantics import Functional

from .branches import ScalarReads
from .compile import NativeKernel
from .places import Places
from .polling import Polls
from .recording import NativeSink, Recording

#: The start of a block: its number, that of all, the core in its group, the group's cores, and the
#: bytes of global memory.
START = struct.Struct("<5Q")

#: The default number of seconds of CPU time of each core's kernel.
SECONDS = 20


def build(
    kernels: Mapping[str, NativeKernel],
    chip: Chip,
    arguments: Mapping[str, Any],
    *,
    blocks: int = 1,
    limit: int = 1_000_000,
    seconds: int = SECONDS,
    reads: ScalarReads | None = None,
) -> tuple[Program, Functional]:
    """Run compiled kernels and build a program from the intrinsics that they record.

    The kernels execute native code. Each core's kernel runs in a process of its own, with limits of
    CPU time and memory, without files to write, and without a network where the system has
    namespaces.

    Parameters
    ----------
    kernels : mapping of str to NativeKernel
        The kernel compiled for each kind of core.
    chip : Chip
        The chip whose cores run them.
    arguments : mapping of str to ndarray or number
        The arguments by parameter name, as for ``cce.build``.
    blocks : int
        The number of blocks, 1 to 65535; if there are several kinds, a group of cores runs a block.
    limit : int
        The most intrinsics and scalar accesses of each core.
    seconds : int
        The most seconds of CPU time of each core's kernel.
    reads : ScalarReads, optional
        Receives the scalar reads, and may answer other values; see ``branches``.

    Returns
    -------
    program : Program
        The recorded instructions.
    functional : Functional
        The memories as the kernels left them.

    Raises
    ------
    ValueError
        If the arguments do not fit, or a kernel makes a mistake (with its position).
    """
    if not kernels:
        raise ValueError("kernels must name at least one kind of core")
    first = next(iter(kernels.values()))
    program = Program(chip, first.name, blocks=blocks)
    program.sources |= first.sources
    values = place_arguments(program, first.parameters, arguments)
    functional = Functional(program, "golden" if len(kernels) == 1 else "fast")
    scheduler, polls, tasks, places = Scheduler(), Polls(), [], []
    mixed = len(kernels) > 1
    try:
        for kind, kernel in kernels.items():
            shown = {str(path): name for path, name in kernel.shown.items()}
            place = Places(kernel.program, shown, kernel.libraries)
            places.append(place)
            per = chip.kind(kind).per_group if mixed else 1
            rounds = blocks > chip.kind(kind).count
            for index in range(blocks * per):
                core = program.core(index, kind)
                sink = NativeSink(core, functional, scheduler)
                block, sub = divmod(index, per)
                ids = (block, blocks, sub, per, program.gm_bytes)
                recording = Recording(kernel, sink, place, limit, seconds, polls, reads)
                task = partial(_run, recording, ids, values, release=mixed or rounds)
                tasks.append((core, task))
        scheduler.run(tasks)
        polls.order(program)
        if reads is not None:
            reads.polls = polls.places
        for place in places:
            program.calls |= place.calls()
    finally:
        for place in places:
            place.close()
    return program, functional


def _run(
    recording: Recording, ids: tuple[int, ...], values: Mapping[str, Any], *, release: bool
) -> None:
    """Run the kernel of a core; with ``release``, forget the core's buffers afterwards."""
    recording.run(ids, values)
    sink = recording.sink
    if release and sink.functional is not None:
        sink.functional.release(sink.core)
    # Instructions that the simulator appends later do not come from a line of the kernel.
    sink.core.position = None
