"""Operands of the dot products for power, and golden's results."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from amaranth.hdl import Shape

from vitruvian.common.errors import UserError
from vitruvian.common.validate import one_of
from vitruvian.golden.fp import from_float, fused_dot, int_dot, to_float
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.spec import DotSpec, IntDotSpec
from vitruvian.hdl.catalogue.unit import Variant
from vitruvian.hdl.elaborate import only_described
from vitruvian.hdl.fp.multidot import MultiDot

#: Cycles for which B stays the same under ``relu``.
HELD = 16
#: Name -> description of the operands, for help texts and tables.
STIMULI = {
    "uniform": "every finite code is equally likely",
    "normal": "normally distributed operands",
    "relu": f"activations max(x, 0) of normally distributed x, and B held for {HELD} cycles",
}


@dataclass(frozen=True)
class PowerStimulus:
    """Bits of the ports: a row for each cycle, and a column for each bit, the lowest first.

    Attributes
    ----------
    inputs, expected : dict of str to (C, W) ndarray of uint8
        Bits of each input, and bits that golden expects of each output ``latency`` cycles later.
    latency : int
        Cycles from operands to their result. These cycles and the one behind them fill the
        registers, so that power does not count them (``warm_up``).
    unknown : frozenset of str
        Outputs about which golden says nothing, such as the flags of another project's unit.
    held : dict of str to int
        Inputs that keep one value, which says what the unit computes, and this value.
    busy : (C,) ndarray of bool, optional
        Cycles that have new operands; without it, all have.
    """

    inputs: dict[str, np.ndarray]
    expected: dict[str, np.ndarray]
    latency: int = 0
    unknown: frozenset[str] = frozenset()
    held: Mapping[str, int] = field(default_factory=dict)
    busy: np.ndarray | None = None

    @property
    def busy_share(self) -> float:
        """The share of the counted cycles that have new operands."""
        return 1.0 if self.busy is None else float(self.busy[self.warm_up :].mean())

    @property
    def warm_up(self) -> int:
        """Number of cycles at the start that are not counted."""
        return self.latency + 1


def stimulus(
    variant: Variant, name: str, *, cycles: int, seed: int, idle: int = 0
) -> PowerStimulus:
    """Return operands of a variant of ``dot``, ``intdot`` or ``element`` with golden's results.

    A unit with the port ``valid`` gets a 1 there in cycles with new operands.

    Parameters
    ----------
    name : str
        A key of ``STIMULI``.
    cycles : int
        Number of cycles that are counted; those of the warm-up come before them.
    seed : int
        Seed of the random numbers.
    idle : int
        Percentage of cycles without new operands: operands and results stay as they were.

    Raises
    ------
    UserError
        If the stimulus is unknown, or if the unit has no operands for power.
    """
    one_of("stimulus", name, STIMULI)
    component: Any = only_described(variant.build())
    held: dict[str, int] = {}
    if isinstance(component, MultiDot):
        mode = variant.configuration["mode"] or component.precisions[0]
        spec = _spec_of_mode(component, mode)
        if len(component.precisions) > 1:
            held["precision"] = component.precisions.index(mode)
    else:
        spec = getattr(component, "spec", None)
    latency = int(component.latency)
    rng, cycles = np.random.default_rng(seed), cycles + latency + 1
    if isinstance(spec, IntDotSpec):
        values = _integers(spec, name, cycles, rng)
        widths = {"a": 8, "b": 8, "c": 32, "d": 32}
    elif isinstance(spec, DotSpec) and spec.scales is None:
        values = _numbers(spec, name, cycles, rng)
        formats = {"a": spec.input, "b": spec.input_b, "c": spec.output, "d": spec.output}
        widths = {port: format.storage_bits for port, format in formats.items()}
    else:
        raise UserError(
            "power must be asked for dot or intdot without scales, or for element, not "
            f"{variant.arguments}"
        )
    bits = {
        port: _bits(np.asarray(array), widths[port], component.signature.members[port].shape)
        for port, array in values.items()
    }
    busy = np.arange(cycles) == 0
    busy |= np.random.default_rng(seed + 1).random(cycles) >= idle / 100
    latest = np.maximum.accumulate(np.where(busy, np.arange(cycles), 0))
    bits = {port: rows[latest] for port, rows in bits.items()}
    expected = {"d": bits.pop("d")}
    if "valid" in component.signature.members:
        bits["valid"] = busy.astype(np.uint8)[:, None]
        if held and not idle:
            held["valid"] = 1
    for port, value in held.items():
        column = np.full((cycles, 1), value)
        bits[port] = _bits(column, 64, component.signature.members[port].shape)
    return PowerStimulus(
        inputs=bits, expected=expected, latency=latency, held=held, busy=busy if idle else None
    )


def _spec_of_mode(component: MultiDot, mode: str) -> DotSpec | IntDotSpec:
    """Return the arithmetic of a unit with several precisions while one is in use."""
    if mode in component.specs:
        return component.specs[mode]
    return IntDotSpec(k=component.int8_k, saturate=component.saturate)


def _drawn(
    name: str, shape: tuple[int, int], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return normally distributed A, B and C; ``relu`` changes A and B."""
    a, b, c = rng.normal(size=shape), rng.normal(size=shape), rng.normal(size=shape[0])
    if name == "relu":
        a = np.maximum(a, 0.0)
        b = np.repeat(b[::HELD], HELD, axis=0)[: shape[0]]
    return a, b, c


def _numbers(
    spec: DotSpec, name: str, cycles: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    shape = (cycles, spec.k)
    if name == "uniform":
        a = _finite(spec.input, shape, rng)
        b = _finite(spec.input_b, shape, rng)
        c = _finite(spec.output, (cycles,), rng)
    else:
        drawn = _drawn(name, shape, rng)
        a, b, c = (
            from_float(values, format)
            for values, format in zip(drawn, (spec.input, spec.input_b, spec.output), strict=True)
        )
    return {"a": a, "b": b, "c": c, "d": fused_dot(a, b, c, spec)}


def _finite(format: FloatFormat, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Return random codes of finite numbers."""
    dtype = from_float(0.0, format).dtype

    def draw(count: int) -> np.ndarray:
        codes = rng.integers(0, 1 << format.code_bits, count, dtype=np.uint64)
        return (codes << np.uint64(format.storage_shift)).astype(dtype)

    codes = draw(int(np.prod(shape)))
    while True:
        wrong = np.flatnonzero(~np.isfinite(to_float(codes, format)))
        if not len(wrong):
            return codes.reshape(shape)
        codes[wrong] = draw(len(wrong))


def _integers(
    spec: IntDotSpec, name: str, cycles: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    shape = (cycles, spec.k)
    signs = {"signed_a": spec.signed_a, "signed_b": spec.signed_b}
    kinds = [np.int8 if signed else np.uint8 for signed in signs.values()]
    if name == "uniform":
        a, b = (rng.integers(0, 256, shape, dtype=np.uint8).view(kind) for kind in kinds)
        c = rng.integers(-(2**31), 2**31, cycles).astype(np.int32)
    else:
        # A quarter of the range is one standard deviation.
        drawn = _drawn(name, shape, rng)
        limits = [np.iinfo(kind) for kind in kinds]
        a, b = (
            np.clip(np.rint(32 * values), limit.min, limit.max).astype(limit.dtype)
            for values, limit in zip(drawn[:2], limits, strict=True)
        )
        c = np.rint(1024 * drawn[2]).astype(np.int32)
    d = np.asarray(int_dot(a, b, c, **signs, saturate=spec.saturate)).astype(np.int32)
    return {"a": a, "b": b, "c": c, "d": d}


def _bits(codes: np.ndarray, code_bits: int, shape: Any) -> np.ndarray:
    """Return the bits of a port for each row of codes, side by side; those left over are 0."""
    words = codes.reshape(len(codes), -1, 1).astype(np.int64).astype(np.uint64)
    bits = words >> np.arange(code_bits, dtype=np.uint64) & np.uint64(1)
    bits = bits.reshape(len(codes), -1).astype(np.uint8)
    width = Shape.cast(shape).width
    return np.pad(bits, ((0, 0), (0, max(0, width - bits.shape[1]))))[:, :width]
