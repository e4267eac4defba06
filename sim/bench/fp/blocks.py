"""Batch checks of the dot products with block scales, which compare compiled RTL with golden."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from vitruvian.golden.fp import DotSpec, fused_dot
from vitruvian.golden.machines import find
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.fp.scaled import ScaledDot
from vitruvian.hdl.fp.units import unit_of
from vitruvian.sim.bench.silicon import FOLDER
from vitruvian.sim.machines.sets import read_set
from vitruvian.sim.rtl import compile_unit
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result, compare

from .stimuli import dot_vectors

_UNIT = UNITS["blockdot"]

#: Share of the vectors with arbitrary scales, and of the vectors with a special scale.
ARBITRARY, SPECIAL = 0.15, 0.1


def block_vectors(spec: DotSpec, count: int, *, seed: int) -> dict[str, np.ndarray]:
    """Return random operands with scales, so that C and products of all magnitudes meet.

    The operands and C are those of ``dot_vectors``. Most scales move the products to the bottom,
    the middle or the top of the range of the result, and C moves with them in two of three vectors.

    Parameters
    ----------
    count : int
        Number of vectors.

    Returns
    -------
    dict of str to ndarray
        ``a`` and ``b`` (count, K), ``c`` (count,), ``scale_a`` and ``scale_b`` (count, K / block).
    """
    assert spec.scales is not None and spec.scales.format.nan is not None
    a, b, c = dot_vectors(spec, count, seed=seed)
    rng = np.random.default_rng([seed, 1])
    scale, blocks = spec.scales.format, spec.k // spec.scales.block
    if scale.subnormals:
        shift = rng.integers(2 - 2 * scale.bias, 17, count)
    else:
        middle, bottom = rng.integers(-20, 21, count), rng.integers(-160, -95, count)
        shift = np.choose(rng.integers(0, 3, count), [middle, bottom, rng.integers(90, 129, count)])
    near = shift[:, None] + rng.integers(-1, 2, (count, blocks)) * rng.integers(0, 9, (count, 1))
    f, largest = scale.fraction_bits, scale.max_finite >> scale.fraction_bits
    total = np.clip(near + 2 * scale.bias, 0, 2 * largest)
    part = rng.integers(np.maximum(total - largest, 0), np.minimum(total, largest) + 1)
    codes = []
    for field in (part, total - part):
        code = field << f | rng.integers(0, 1 << f, field.shape)
        code = np.where(rng.random((count, 1)) < ARBITRARY, rng.integers(0, 256, code.shape), code)
        nan = scale.max_finite if scale.nan is None else scale.nan
        edges = rng.choice([0, 1, scale.max_finite, nan], code.shape)
        special = (rng.random((count, 1)) < SPECIAL) & (rng.random(code.shape) < 0.3)
        codes.append(np.where(special, edges, code).astype(np.uint8))
    # C has the exponent that the products have after scaling, as far as its format allows.
    fraction, ones = spec.output.fraction_bits, (1 << spec.output.exponent_bits) - 1
    field = c.astype(np.int64) >> fraction & ones
    moved = np.clip(field + shift, 0, ones - 1) - field
    moves = (field != ones) & (rng.random(count) < 2 / 3)
    c = (c.astype(np.int64) + (np.where(moves, moved, 0) << fraction)).astype(c.dtype)
    return {"a": a, "b": b, "c": c, "scale_a": codes[0], "scale_b": codes[1]}


def port_values(spec: DotSpec, operands: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the values of a unit's inputs for the operands of ``block_vectors``."""
    if unit_of(spec) is ScaledDot:
        return operands | {key: operands[key][:, 0] for key in ("scale_a", "scale_b")}
    # The ports have no bits above the codes.
    return operands | {key: operands[key] & (1 << spec.input.width) - 1 for key in "ab"}


def run_blocks(
    name: str, spec: DotSpec, vectors: int, seed: int, *, pipeline: int, **options: Any
) -> Result:
    """Compare a unit with ``fused_dot`` on the operands of ``block_vectors``.

    Parameters
    ----------
    name : str
        Name of the configuration, for messages.
    vectors, seed : int
        Number of vectors, and seed of the stimuli.
    pipeline : int
        Number of pipeline registers.
    **options
        ``unit``, the class of the unit, and its further parameters.
    """
    operands = block_vectors(spec, vectors, seed=seed)
    return compare_blocks(name, spec, operands, seed=seed, pipeline=pipeline, **options)


def compare_blocks(
    name: str,
    spec: DotSpec,
    operands: dict[str, np.ndarray],
    *,
    seed: int | None = None,
    expected: np.ndarray | None = None,
    unit: Callable[..., Any] | None = None,
    **options: Any,
) -> Result:
    """Compare a unit with ``fused_dot``, or with results from elsewhere, on the given operands.

    Parameters
    ----------
    name : str
        Name of the configuration, for messages.
    operands : dict of str to ndarray
        As ``block_vectors`` returns them.
    seed : int, optional
        Seed of the operands, for messages.
    expected : (N,) ndarray, optional
        The results, if golden does not compute them.
    unit : callable, optional
        Class of the unit, by default that of ``hdl.fp.units.unit_of``.
    **options
        Parameters of the unit.
    """
    unit = unit or unit_of(spec)
    model = compile_unit(unit, spec=spec, **options)
    inputs: dict[str, Any] = port_values(spec, operands)
    if expected is None:
        expected = fused_dot(**operands, spec=spec)
    return compare(
        name,
        got=model.run(**inputs),
        expected=expected,
        operands=operands,
        seed=seed,
    )


def checks() -> Iterator[Check]:
    """Yield a row for every checked configuration, and one for each data set that exists.

    The data sets are not part of the project; ``sim.bench.machines`` describes them.
    """
    for c in map(_UNIT.default, _UNIT.checked):
        component, parameters = _UNIT.component(c)
        spec = parameters.pop("spec")
        operands = spec.input.name
        if spec.input_b != spec.input:
            operands += f"×{spec.input_b.name}"
        kind = f" {c['multiplier']}" if c["multiplier"] else ""
        name = f"{c['rule']} {operands}→fp32 K={spec.k} pipeline={c['pipeline']}{kind}"
        yield Check(
            unit=f"fp.{component.__name__}",
            configuration=name,
            run=partial(run_blocks, name, spec, **parameters),
            weight=4 + spec.k // 4,
        )
    for path in sorted((FOLDER.parent / "machines").glob("b200_*.npz")):
        rule = find(path.stem).rule
        if isinstance(rule, DotSpec) and rule.scales is not None:
            yield Check(
                unit=f"fp.{unit_of(rule).__name__}",
                configuration=f"{path.stem.replace('_', ' ')}, executed model",
                run=lambda vectors, seed, path=path: run_set(path),
                weight=12,
            )


def run_set(path: Path) -> Result:
    """Compare a unit with the results in a file of ``sim.machines.sets``."""
    data = read_set(path)
    spec = data.machine.rule
    assert isinstance(spec, DotSpec)
    assert data.scale_a is not None and data.scale_b is not None
    operands = {"a": data.a, "b": data.b, "c": data.c}
    operands |= {"scale_a": data.scale_a, "scale_b": data.scale_b}
    return compare_blocks(data.name, spec, operands, expected=data.d, pipeline=3)
