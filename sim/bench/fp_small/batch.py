"""Batch checks of the small units, which compare compiled RTL with golden."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from vitruvian.golden.fp import (
    FORMATS,
    INT_FORMATS,
    UNORDERED,
    IntFormat,
    convert,
    from_int,
    maximum_number,
    minimum_number,
    mul,
    to_int,
)
from vitruvian.golden.fp import add as golden_add
from vitruvian.golden.fp import compare as golden_compare
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.catalogue.unit import Configuration
from vitruvian.hdl.fp.add import Adder
from vitruvian.hdl.fp.compare import MinMax
from vitruvian.hdl.fp.convert import Converter
from vitruvian.hdl.fp.mul import Multiplier
from vitruvian.sim.rtl import CompiledModel, compile
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result, compare

from .bank import SmallUnitBank
from .stimuli import codes, pairs


@dataclass(frozen=True, kw_only=True)
class SmallUnit:
    """A configuration of a small unit.

    Attributes
    ----------
    name : str
        Unique name of the configuration.
    unit : callable
        Class of the component.
    parameters : dict
        Parameters of the component; formats are given by their names.
    source : str
        Format of the operands.
    operands : int
        Number of operands, 1 or 2.
    """

    name: str
    unit: Callable[..., Any]
    parameters: dict[str, Any]
    source: str
    operands: int


def unit_of(name: str, given: Configuration) -> SmallUnit:
    """Return a configuration of the small unit ``name`` of the catalogue.

    Parameters
    ----------
    given : mapping
        A partial configuration; it names the unit.
    """
    described = UNITS[name]
    c = described.default(given)
    component, parameters = described.component(c)
    values = " ".join(f"{key}={value}" for key, value in given.items())
    return SmallUnit(
        name=f"{component.__name__} {values}",
        unit=component,
        parameters=parameters,
        source=c["from"] if component is Converter else c["format"],
        operands=1 if component is Converter else 2,
    )


#: The names of the small units in the catalogue.
SMALL = ("add", "multiply", "compare", "minmax", "convert")
ALL = tuple(unit_of(name, given) for name in SMALL for given in UNITS[name].checked)


def groups(units: Iterable[SmallUnit] = ALL) -> dict[str, list[SmallUnit]]:
    """Return lists of units that fit into one ``SmallUnitBank``, by the name of the group."""
    result: dict[str, list[SmallUnit]] = {}
    for unit in units:
        latency = unit.parameters.get("pipeline", 0)
        kind = "pairs" if unit.operands == 2 else "codes"
        # Units with equal operands and latency share a model, which saves most of the compilation.
        result.setdefault(f"{unit.source} {kind} pipeline={latency}", []).append(unit)
    return result


def compile_group(units: Sequence[SmallUnit]) -> CompiledModel:
    """Compile the units of a group into one model."""
    return compile(
        SmallUnitBank([unit.unit(**unit.parameters) for unit in units]), name="SmallUnitBank"
    )


def run_group(units: Sequence[SmallUnit], vectors: int, seed: int) -> Result:
    """Compare every unit of a group with golden on random operands and edge cases."""
    if units[0].operands == 2:
        operands = dict(zip("ab", pairs(units[0].source, vectors, seed=seed), strict=True))
    else:
        operands = {"a": codes(units[0].source, vectors, seed=seed)}
    return compare_group(compile_group(units), units, operands, seed=seed)


def compare_group(
    model: CompiledModel,
    units: Sequence[SmallUnit],
    operands: dict[str, np.ndarray],
    *,
    seed: int | None = None,
) -> Result:
    """Compare every unit of a group with golden, for both values of the one-bit input.

    Parameters
    ----------
    model : CompiledModel
        Result of ``compile_group``.
    operands : dict of str to (N,) ndarray of codes
        ``a``, and ``b`` for units with two operands.
    seed : int, optional
        Seed of the operands, for messages.
    """
    result = Result(vectors=0, mismatches=0)
    two = "b" in operands
    # Subtraction of adders, and the maximum of MinMax; other units ignore it.
    for control in (0, 1) if two else (0,):
        outputs = model.run(**operands, **({"control": control} if two else {}))
        if not isinstance(outputs, dict):
            outputs = {"d0": outputs}
        for n, unit in enumerate(units):
            result = result + compare(
                f"{unit.name} control={control}" if two else unit.name,
                got=outputs[f"d{n}"],
                expected=expected(unit, control, **operands),
                operands=operands,
                seed=seed,
            )
    return result


def expected(unit: SmallUnit, control: int, **operands: np.ndarray) -> np.ndarray:
    """Return golden's result as codes.

    Parameters
    ----------
    control : int
        Value of the unit's one-bit input, ``subtract`` or ``maximum``.
    **operands : (N,) ndarray of codes
        ``a`` and, for units with two operands, ``b``.

    Returns
    -------
    (N,) ndarray of codes
        For ``Compare``, bit 0 is the output ``less``, bit 1 ``equal`` and bit 2 ``unordered``.
    """
    options = unit.parameters
    rounding = options.get("rounding", "RNE")
    a, format = operands["a"], unit.source
    if unit.unit is Converter:
        return _converted(a, rounding, options)
    b = operands["b"]
    if unit.unit is Adder:
        if control:
            # a − b is a + (−b), also for the sign of a NaN, which golden makes canonical.
            b = b ^ b.dtype.type(FORMATS[format].sign_mask)
        return golden_add(a, b, format, options.get("output"), rounding)
    if unit.unit is Multiplier:
        return mul(a, b, format, options.get("output"), rounding)
    if unit.unit is MinMax:
        return (maximum_number if control else minimum_number)(a, b, format)
    relation = np.asarray(golden_compare(a, b, format))
    # less, equal and unordered, in the order of the unit's outputs.
    flags = (relation == -1) + 2 * (relation == 0) + 4 * (relation == UNORDERED)
    return flags.astype(np.uint8)


def _converted(a: np.ndarray, rounding: str, options: dict[str, Any]) -> np.ndarray:
    source, target = options["source"], options["target"]
    if target in INT_FORMATS:
        values = np.asarray(to_int(a, source, target, rounding))
        return values.view(f"u{values.dtype.itemsize}")
    if source in INT_FORMATS:
        f: IntFormat = INT_FORMATS[source]
        values = a.view(f"i{a.dtype.itemsize}") if f.signed else a
        return from_int(values, target, rounding)
    return convert(a, source, target, rounding, saturate=options.get("saturate", False))


def checks() -> Iterator[Check]:
    """Yield a row for every group."""
    for name, units in groups().items():
        kinds = ", ".join(dict.fromkeys(unit.unit.__name__ for unit in units))
        yield Check(
            unit="fp.small",
            configuration=f"{name}: {kinds} ({len(units)})",
            run=partial(run_group, units),
            weight=2 + len(units) // 2,
        )
