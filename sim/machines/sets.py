"""Sets of operands and results of machines: measured files, files of executed models, examples.

A set is a file ``STEM.npz`` with the codes ``a`` and ``b`` (N, K), ``c`` and ``d`` (N,), and
``scale_a`` and ``scale_b`` where the machine has scales. STEM is a row of the table of machines.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.npz import Header, Misfit, read_arrays
from vitruvian.golden.fp.codec import as_codes, unpack
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.machines import Machine, compute, find
from vitruvian.golden.machines.table import FOLDER as MAKERS
from vitruvian.golden.machines.table import output_format

_EXAMPLES = MAKERS.parent / "examples.toml"


@dataclass(frozen=True, kw_only=True)
class MachineSet:
    """Operands and results of one instruction.

    Attributes
    ----------
    name : str
        Name of the set, for tables.
    machine : Machine
        The row of the table.
    a, b : (N, K) ndarray of unsigned int
    c, d : (N,) ndarray of unsigned int
    scale_a, scale_b : (N, K / block) ndarray of uint8, or None
    """

    name: str
    machine: Machine
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    d: np.ndarray
    scale_a: np.ndarray | None = None
    scale_b: np.ndarray | None = None


@dataclass(frozen=True, kw_only=True)
class Differences:
    """The number of rows in which two results differ.

    Attributes
    ----------
    rows : int
        All rows.
    values : int
        Rows with other values. Two NaNs are equal, whatever their codes.
    zero_signs : int
        Rows in which both are zero, with other signs.
    first : int or None
        The first row of either kind.
    """

    rows: int
    values: int
    zero_signs: int
    first: int | None


def read_set(path: Path) -> MachineSet:
    """Read a set; its file's name is a stem.

    Raises
    ------
    UserError
        If the file is no such set or has more than 256 MiB of arrays, or if its name is not in the
        table.
    """
    if not path.is_file():  # a device has no end
        raise UserError(f"{path} must be a file .npz that exists")
    machine = find(path.stem)
    try:
        arrays, _ = read_arrays(path, _ARRAYS, _check)
    except (OSError, ValueError, MemoryError) as error:
        text = str(error) or "it is too large for the memory"
        # Messages of the reader begin with the file's name; the user gets its whole path.
        if text.startswith(path.name):
            raise UserError(f"{path}{text.removeprefix(path.name)}") from None
        raise UserError(f"{path} must be an .npz file of unsigned codes: {text}") from None
    return MachineSet(name=path.stem, machine=machine, **arrays)


_ARRAYS = ("a", "b", "c", "d", "scale_a", "scale_b")


def _check(found: Mapping[str, Header]) -> None:
    """Raise ``Misfit`` unless the arrays have the shapes and types of a set."""
    for name in "abcd":
        if name not in found:
            raise Misfit(f"it must have the arrays a, b, c and d, not lack {name}")
    rows = found["d"].shape[:1]
    if len(found["d"].shape) != 1 or not rows[0]:
        raise Misfit(f"d must have the shape (rows,) with at least one row, not {found['d'].shape}")
    for name, array in found.items():
        axes = 1 if name in "cd" else 2
        if len(array.shape) != axes or array.shape[:1] != rows or 0 in array.shape:
            wanted = f"({rows[0]},)" if axes == 1 else f"({rows[0]}, K) with a K of at least 1"
            raise Misfit(f"{name} must have the shape {wanted}, not {array.shape}")
        if array.dtype.kind not in "iu":
            raise Misfit(f"{name} must hold integers, not {array.dtype}")
    if found["a"].shape != found["b"].shape:
        raise Misfit(f"b must have the shape of a, {found['a'].shape}, not {found['b'].shape}")


def examples() -> Iterator[MachineSet]:
    """Yield one worked example for each kind of rule."""
    for entry in tomllib.loads(_EXAMPLES.read_text(encoding="utf-8"))["example"]:
        machine = find(entry["stem"])
        operands = {}
        for name in "ab":
            # The file lists only elements that are no zeros; keys of TOML are strings.
            operands[name] = np.zeros((1, entry["k"]), np.uint64)
            for position, code in entry[name].items():
                operands[name][0, int(position)] = code
        scales = {
            name: np.array([entry[name]], np.uint8)
            for name in ("scale_a", "scale_b")
            if name in entry
        }
        c, d = (np.array([entry.get(name, 0)], np.uint32) for name in "cd")
        yield MachineSet(
            name=f"{machine.stem} example", machine=machine, c=c, d=d, **operands, **scales
        )


def compare_set(data: MachineSet) -> Differences:
    """Compare golden with a set.

    Raises
    ------
    UserError
        If the arrays do not hold codes of the row's formats, or have a K that it does not have.
    """
    format = output_format(data.machine)
    try:
        got = compute(data.machine.rule, data.a, data.b, data.c, data.scale_a, data.scale_b)
        expected = data.d if format is None else as_codes(data.d, format, "d")
    except (TypeError, ValueError) as error:
        raise UserError(f"{data.name} must hold codes of {data.machine.stem}: {error}") from None
    return differences(got, expected, format)


def differences(got: np.ndarray, expected: np.ndarray, format: FloatFormat | None) -> Differences:
    """Count the rows in which codes differ; ``format`` is None for integers."""
    got, expected = got.astype(np.uint64), expected.astype(np.uint64)
    other = got != expected
    signs = np.zeros(len(other), bool)
    if format is not None:
        x, y = unpack(got, format), unpack(expected, format)
        other &= ~(x.nan & y.nan)
        zero = [(u.significand == 0) & ~u.infinity & ~u.nan for u in (x, y)]
        # Two codes of zero can differ in the sign alone.
        signs = other & zero[0] & zero[1]
    rows = np.flatnonzero(other)
    return Differences(
        rows=len(other),
        values=int((other & ~signs).sum()),
        zero_signs=int(signs.sum()),
        first=int(rows[0]) if rows.size else None,
    )
