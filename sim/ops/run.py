"""The common parts of operators: arguments, layouts, and the run of a kernel on a chip."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.golden.scu import from_nc1hwc0, to_nc1hwc0
from vitruvian.sim.davinci import Chip, Program, Report, load_chip, simulate
from vitruvian.sim.davinci.chip.model import CoreKind
from vitruvian.sim.kernels.kernel import LIMITS, SimulationCost, vector_kind

#: The tile that a kernel computes at a time, in the kernel's own type.
Tile = TypeVar("Tile")

#: The largest number of an option: NumPy computes addresses with 64 bits.
_MOST = (1 << 31) - 1


def chip_of(chip: Chip | str) -> Chip:
    """Return a chip by its name, or the chip itself.

    Raises
    ------
    TypeError, ValueError
        If the argument is neither a ``Chip`` nor the name or file of one.
    """
    if isinstance(chip, Chip):
        return chip
    if not isinstance(chip, str | Path):
        raise TypeError(f"chip must be a Chip, or the name or file of one, not {chip!r}")
    return load_chip(chip)


def pair(name: str, value: Any, low: int) -> tuple[int, int]:
    """Return an option of PyTorch as two integers: (rows, columns), or one number for both.

    Parameters
    ----------
    name : str
        Name of the option, for the message.
    value : int or (int, int)
    low : int
        The smallest number that is allowed.

    Raises
    ------
    TypeError
        If the value is neither an integer nor two integers.
    UserError
        If a number is below ``low``, or does not fit into 32 bits.
    """
    both = (value, value) if isinstance(value, int | np.integer) else value
    integral = isinstance(both, tuple | list) and len(both) == 2
    if integral:
        integral = all(isinstance(x, int | np.integer) and not isinstance(x, bool) for x in both)
    if not integral:
        raise TypeError(f"{name} must be an int or two ints, not {value!r}")
    first, second = (int(x) for x in both)
    if min(first, second) < low:
        raise UserError(f"{name} must be {low} or more, not {value!r}")
    if (largest := max(first, second)) > _MOST:
        shown = f"an integer of {largest.bit_length()} bits"
        raise UserError(f"{name} must be at most {_MOST:,}, not {shown}")
    return first, second


def half_array(name: str, x: Any) -> np.ndarray:
    """Return the argument after checking that it is an array of FP16.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    x : ndarray of float16

    Raises
    ------
    TypeError
        If ``x`` is not an array of float16, or is a masked array. The message says how to convert
        an array of another type.
    """
    # The kernels would compute with the elements that a mask hides.
    if not isinstance(x, np.ndarray) or isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} must be a NumPy array of float16, not {type(x).__name__!r}")
    if x.dtype != np.float16:
        hint = f"; {name}.astype(np.float16) converts it" if x.dtype.kind in "fiub" else ""
        raise TypeError(f"{name} must be a NumPy array of float16, not an array of {x.dtype}{hint}")
    return x


def images(name: str, x: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Return an array after checking that it is a batch of FP16 images.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    x : (N, C, H, W) ndarray of float16
    shape : tuple of int, optional
        The only shape that is allowed; by default any shape without an empty axis.

    Raises
    ------
    TypeError
        If ``x`` is not an array of float16.
    UserError
        If ``x`` has another shape.
    """
    x = half_array(name, x)
    if shape is not None and x.shape != shape:
        raise UserError(f"{name} must have the shape {shape}, not {x.shape}")
    if shape is None and (x.ndim != 4 or 0 in x.shape):
        raise UserError(f"{name} must be (N, C, H, W), each 1 or more, not {x.shape}")
    return x


def batched(name: str, x: Any) -> tuple[np.ndarray, bool]:
    """Return FP16 images with a batch axis, and True if the argument is one image without it.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    x : (N, C, H, W) or (C, H, W) ndarray of float16

    Raises
    ------
    TypeError
        If ``x`` is not an array of float16.
    UserError
        If ``x`` has another shape, or an empty axis.
    """
    x = half_array(name, x)
    if x.ndim not in (3, 4) or 0 in x.shape:
        raise UserError(f"{name} must be (N, C, H, W) or (C, H, W), each 1 or more, not {x.shape}")
    single = x.ndim == 3
    return images(name, x[None] if single else x), single


def pack(x: np.ndarray, c0: int | None = None) -> np.ndarray:
    """Convert (N, C, H, W) to NC1HWC0; the channels that fill up the last group are zero.

    Parameters
    ----------
    x : (N, C, H, W) ndarray
    c0 : int, optional
        Channels in a group, by default as many as fill 32 bytes.
    """
    return np.ascontiguousarray(to_nc1hwc0(x, c0))


def unpack(x: np.ndarray, channels: int) -> np.ndarray:
    """Convert NC1HWC0 back to (N, C, H, W) with the first ``channels`` channels."""
    return np.ascontiguousarray(from_nc1hwc0(x, channels))


def execute(program: Program, *, checks: bool = False) -> Report:
    """Run a program on the simulated chip, with data.

    Parameters
    ----------
    checks : bool
        If True, check the program too; a user who asks for the report gets the findings with it.

    Returns
    -------
    Report
        Its ``outputs`` are the final contents of global memory, by the names of the tensors.
    """
    return simulate(program, checks=checks)


def run_tiled(
    name: str,
    chip: Chip | str,
    choose: Callable[[Chip, int], Tile],
    needs: Callable[[Tile, Chip, int], SimulationCost],
    build: Callable[[Tile, Chip], Program],
    *,
    kind: Callable[[Chip], CoreKind] = vector_kind,
    checks: bool,
) -> Report:
    """Choose the tile of a kernel, refuse it if its simulation is too large, and run the program.

    Parameters
    ----------
    name : str
        Name of the operator, for the message.
    choose : callable
        Return the tile for a chip and a number of cores, which is that of the chip.
    needs : callable
        Return the cost of simulating a tile on a chip with so many cores.
    build : callable
        Return the program of a tile on a chip, with data.
    kind : callable
        Return the kind of cores of a chip that the kernel runs on.
    checks : bool
        As ``execute`` takes it.

    Raises
    ------
    TypeError, ValueError
        If the chip has no such cores, or the simulation is too large.
    """
    target = chip_of(chip)
    cores = kind(target).count
    tile = choose(target, cores)
    needs(tile, target, cores).check(name, LIMITS)
    return execute(build(tile, target), checks=checks)


def returned(results: tuple[np.ndarray, ...], report: Report | None) -> Any:
    """Return one result by itself and several as a tuple, followed by the report if there is one.

    Parameters
    ----------
    results : tuple of ndarray
    """
    values = (*results, report) if report is not None else results
    return values[0] if len(values) == 1 else values
