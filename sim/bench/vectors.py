"""Golden vectors: stimuli of the benches with golden's results, as the words of a unit's ports.

A simulator without Python reads them, so that people who have only the Verilog can check it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vitruvian.errors import UserError
from vitruvian.golden.fp import fused_dot
from vitruvian.hdl.catalogue.unit import Variant
from vitruvian.hdl.cube import MatrixUnit
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.hdl.fp.exact import ExactDotProduct
from vitruvian.hdl.fp.intdot import IntDotProduct
from vitruvian.hdl.simd2.integer import IntTile
from vitruvian.sim.rtl.emit import interface_of
from vitruvian.sim.rtl.ports import Interface, Port
from vitruvian.validate import one_of

from .cube.traffic import make_traffic
from .fp.batch import int_results
from .fp.stimuli import CLASSES, dot_vectors, int_vectors
from .fp_small.batch import SMALL, expected, unit_of
from .fp_small.stimuli import codes, pairs
from .simd2.integer import int_vectors as tile_vectors
from .simd2.integer import late_c, tile_results

__all__ = ["LEAST", "WITH_VECTORS", "GoldenVectors", "golden_vectors"]

#: The smallest number of vectors: every class of operands must occur.
LEAST = 2 * len(CLASSES)


@dataclass(frozen=True, kw_only=True)
class GoldenVectors:
    """The words of the ports of a unit, in the order in which they are sent or expected.

    A unit with streams has words of the payloads of its streams, by the names of the streams.

    Attributes
    ----------
    interface : Interface
        Ports and streams of the unit.
    latency : int
        Cycles from a word of the inputs to the word of the outputs with the same number; without
        meaning for streams.
    inputs, outputs : dict of str to list of int
        Words by the name of the port or stream. The outputs may have fewer words than the inputs.
    care : dict of str to list of int
        For outputs of which golden determines only some bits: a word for each word of the output,
        with ones at these bits.
    """

    interface: Interface
    latency: int
    inputs: dict[str, list[int]]
    outputs: dict[str, list[int]]
    care: dict[str, list[int]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Number of expected words of all outputs together."""
        return sum(map(len, self.outputs.values()))


@dataclass(frozen=True, kw_only=True)
class _Arrays:
    """Stimuli in the form that compiled models take, and golden's results in the same form."""

    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    care: Mapping[str, Any] = field(default_factory=dict)


def golden_vectors(variant: Variant, *, count: int, seed: int) -> GoldenVectors:
    """Return stimuli of the unit's bench and golden's results.

    Parameters
    ----------
    variant : Variant
        A variant of one of the units ``WITH_VECTORS``.
    count : int
        Approximate number of results, at least ``LEAST``.
    seed : int
        Seed of the stimuli.

    Raises
    ------
    UserError
        If the unit has no golden vectors, or if the count is too small.
    """
    name = one_of("unit", variant.unit.name, WITH_VECTORS)
    if count < LEAST:
        raise UserError(f"count must be at least {LEAST}, not {count!r}")
    component: Any = variant.build()
    interface = interface_of(component)
    if name in SMALL:
        arrays = _small(variant, component, count, seed)
    else:
        arrays = _MAKERS[name](component, count, seed)
    ports = {port.name: port for port in interface.inputs + interface.outputs}
    ports |= {s.name: s.payload for s in interface.streams_in + interface.streams_out}
    return GoldenVectors(
        interface=interface,
        latency=0 if interface.has_streams else component.latency,
        inputs={name: _words(ports[name], value) for name, value in arrays.inputs.items()},
        outputs={name: _words(ports[name], value) for name, value in arrays.outputs.items()},
        care={name: _words(ports[name], value) for name, value in arrays.care.items()},
    )


def _words(port: Port, value: Any) -> list[int]:
    """Return the bits of a port for each row of an array, or of nested mappings of arrays."""
    arrays = port.to_memory(value)
    words = [0] * len(arrays[0])
    for leaf, array in zip(port.leaves, arrays, strict=True):
        columns = array.reshape(len(words), -1).T
        for (at, width), column in zip(leaf.pieces(), columns, strict=True):
            mask = (1 << width) - 1
            for row, number in enumerate(column.tolist()):
                words[row] |= (number & mask) << at
    return words


def _dot(unit: Any, count: int, seed: int) -> _Arrays:
    assert isinstance(unit, DotProduct | ExactDotProduct)
    a, b, c = dot_vectors(unit.spec, count, seed=seed)
    d = fused_dot(a, b, c, unit.spec)
    return _Arrays(inputs={"a": a, "b": b, "c": c}, outputs={"d": d})


def _int_dot(unit: Any, count: int, seed: int) -> _Arrays:
    assert isinstance(unit, IntDotProduct)
    spec = unit.spec
    a, b, c = int_vectors(spec.k, spec.signed_a, spec.signed_b, count, seed=seed)
    return _Arrays(inputs={"a": a, "b": b, "c": c}, outputs={"d": int_results(spec, a, b, c)})


def _small(variant: Variant, unit: Any, count: int, seed: int) -> _Arrays:
    described = unit_of(variant.unit.name, variant.configuration)
    rng = np.random.default_rng(seed)
    if described.operands == 2:
        drawn = dict(zip("ab", pairs(described.source, count, seed=seed), strict=True))
    else:
        drawn = {"a": codes(described.source, count, seed=seed)}
    # The stimuli of narrow formats are all codes, or all pairs of codes.
    chosen = rng.permutation(len(drawn["a"]))[:count]
    operands = {name: array[chosen] for name, array in drawn.items()}
    control = rng.integers(0, 2, len(chosen))
    both = [np.asarray(expected(described, value, **operands)) for value in (0, 1)]
    result = np.where(control, both[1], both[0]).astype(both[0].dtype)
    inputs: dict[str, Any] = dict(operands)
    for name in ("subtract", "maximum"):
        if name in unit.signature.members:
            inputs[name] = control.astype(np.uint8)
    if variant.unit.name != "compare":
        return _Arrays(inputs=inputs, outputs={"d": result})
    flags = ("less", "equal", "unordered")
    return _Arrays(inputs=inputs, outputs={f: result >> i & 1 for i, f in enumerate(flags)})


def _tile(unit: Any, count: int, seed: int) -> _Arrays:
    """Return traffic of a matrix unit with streams."""
    assert isinstance(unit, MatrixUnit)
    emit_rate = 0.5
    beats = max(int(count / emit_rate) // (unit.config.m * unit.config.n), LEAST)
    traffic = make_traffic(unit.config, beats=beats, seed=seed, emit_rate=emit_rate)
    return _Arrays(inputs=traffic.inputs, outputs={"o": traffic.d})


def _int_tile(unit: Any, count: int, seed: int) -> _Arrays:
    assert isinstance(unit, IntTile)
    beats = tile_vectors(unit.config, count, seed=seed)
    d = tile_results(unit.config, beats)
    known = slice(0, count - unit.config.pipeline - 1)
    outputs = {"d": d[known], "done": beats["valid"][known]}
    return _Arrays(inputs=late_c(unit.config, beats), outputs=outputs)


_MAKERS: dict[str, Callable[[Any, int, int], _Arrays]] = {
    "dot": _dot,
    "intdot": _int_dot,
    **dict.fromkeys(("cube", "m3xu", "simd2"), _tile),
    "simd2-int": _int_tile,
}

#: The units for which there are golden vectors.
WITH_VECTORS = (*_MAKERS, *SMALL)
