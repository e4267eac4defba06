"""A kernel in CCE C that unit S of a core runs as a RISC-V."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from vitruvian.golden.core import memory_map
from vitruvian.sim.davinci.cce import KernelParameter, read_file
from vitruvian.sim.davinci.isa.operands import DTYPES
from vitruvian.sim.davinci.machine_code.core import ProgramRun, assemble, only_core, run_image
from vitruvian.sim.davinci.machine_code.encode import Texts
from vitruvian.sim.davinci.program.program import Program
from vitruvian.sim.rtl.core import core_config

from .compiler import compile_kernel, with_arguments
from .model import ScalarModel
from .source import kernel_text
from .unrolled import image_of_words


def kernel_image(
    program: Program,
    path: Path,
    arguments: Mapping[str, Any],
    *,
    memory_bytes: int,
    entry: str | None = None,
    defines: Mapping[str, str] | None = None,
    include_path: Sequence[str | Path] = (),
) -> np.ndarray:
    """Return the image of a kernel with its arguments, for the RISC-V of unit S.

    Parameters
    ----------
    program : Program
        The same kernel as the simulator has unrolled it; it has the places of the tensors.
    path : Path
        The source of the kernel.
    arguments : mapping of str to ndarray or number
        As ``cce.build`` takes them.
    memory_bytes : int
        Memory of the processor.
    entry, defines, include_path
        As ``cce.read`` takes them.

    Raises
    ------
    UserError
        If the compiler is missing or refuses the kernel.
    """
    options: dict[str, Any] = {"entry": entry, "defines": defines, "include_path": include_path}
    parameters = read_file(path, **options).parameters
    text = kernel_text(path, **options)
    image = compile_kernel(text.text, text.entry, memory_bytes=memory_bytes)
    values = [_value(program, parameter, arguments[parameter.name]) for parameter in parameters]
    return with_arguments(image, values)


def _value(program: Program, parameter: KernelParameter, value: Any) -> bytes:
    """Return an argument as bytes; a pointer is an address in the address space of S."""
    if parameter.is_pointer:
        tensor = program.tensors.get(parameter.name)
        address = 0 if tensor is None else memory_map.GM + tensor.offset
        return np.array(address, np.uint32).tobytes()
    if parameter.dtype == "fp64":
        return np.array(value, np.float64).tobytes()
    return np.array(value).astype(DTYPES[parameter.dtype]).tobytes()


def run_riscv(
    program: Program, image: np.ndarray, core: Any = "tiny", **options: Any
) -> ProgramRun:
    """Run a kernel on the compiled RTL of a core whose unit S is a RISC-V.

    Parameters
    ----------
    program : Program
        The unrolled kernel, of which the core must have every instruction.
    image : (bytes,) ndarray of uint8
        ``kernel_image``.
    core : str or CoreConfig
    **options
        ``latency`` of ``run_words``.

    Raises
    ------
    EncodingError, CoreFault
        As ``run_on_core``.
    """
    config = core_config(core)
    # What the core lacks is refused with the line of the kernel.
    assemble(only_core(program).instructions, config, Texts())
    words = image.view(np.uint64)
    return run_image(program, replace(config, scalar="riscv"), words, **options)


def run_unrolled(program: Program, core: Any = "tiny", **options: Any) -> ProgramRun:
    """Run an unrolled program on such a core; no compiler is needed.

    Raises
    ------
    EncodingError, CoreFault
        As ``run_on_core``.
    ValueError
        If the program has scalar loads or stores.
    """
    config = core_config(core)
    words = assemble(only_core(program).instructions, config, Texts())
    image = image_of_words(words).view(np.uint64)
    return run_image(program, replace(config, scalar="riscv"), image, **options)


def run_model(
    program: Program, image: np.ndarray, functional: Any, memory_bytes: int
) -> ScalarModel:
    """Run a kernel in the model of such a core, without hardware."""
    model = ScalarModel(image, functional, program, memory_bytes)
    model.run()
    return model
