"""Golden vectors: stimuli of the benches with golden's results, as the words of a unit's ports.

A simulator without Python reads them, so that people who have only the Verilog can check it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.validate import one_of, round_up
from vitruvian.common.wings import registered
from vitruvian.golden.fp import fused_dot
from vitruvian.hdl.catalogue.unit import Variant
from vitruvian.hdl.cube import MatrixUnit
from vitruvian.hdl.elaborate import only_described
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.hdl.fp.exact import ExactDotProduct
from vitruvian.hdl.fp.intdot import IntDotProduct
from vitruvian.hdl.scu import Col2Im, ConversionConfig, Im2Col
from vitruvian.hdl.simd2.integer import IntTile
from vitruvian.hdl.vector import VectorUnit
from vitruvian.sim.rtl.emit import interface_of
from vitruvian.sim.rtl.ports import Interface

from .arrays import Arrays, words_of_port
from .bus import vectors as bus
from .cube.traffic import make_traffic
from .fp.batch import int_results
from .fp.blocks import block_vectors, port_values
from .fp.machines import unit_vectors
from .fp.stimuli import CLASSES, dot_vectors, int_vectors
from .fp_small.batch import SMALL, expected, unit_of
from .fp_small.stimuli import codes, pairs
from .m3xu.vectors import instructions
from .scu.batch import addition_streams, draw_additions, load_streams, words
from .scu.traffic import Walk, additions, loads
from .simd2.integer import int_vectors as tile_vectors
from .simd2.integer import late_c, tile_results
from .vector.batch import as_streams, expected_writes
from .vector.stimuli import make_commands

#: The smallest number of vectors: every class of operands must occur.
LEAST = 2 * len(CLASSES)
#: Mean number of repeats of a command of the vector unit.
_MEAN_REPEATS = 3
#: Mean number of rows of an instruction of the storage conversion.
_ROWS_EACH = 50


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
    after : dict of (str, str) to list of int
        A stream and an event. A word of the stream comes after this number of events: an input is
        not sent earlier, and an output that comes earlier is wrong. An event is a word that passes
        a stream, or a cycle in which a port of one bit is 1.
    answers : dict of str to str
        Input of one bit -> output stream. The input is 1 for a cycle, at a random time after each
        word of the stream.
    zeros : tuple of str
        Outputs without a stream that must always be 0.
    nets : dict of str to dict of str to int
        The nets that form the payload of a stream and their widths, the highest first, if it is not
        one port.
    bit_cycles : int
        Clock cycles of a bit, for a unit at a serial line. The only input is then ``rx``, the only
        output that has words ``tx``, and a word is a byte.
    """

    interface: Interface
    latency: int
    inputs: dict[str, list[int]]
    outputs: dict[str, list[int]]
    care: dict[str, list[int]] = field(default_factory=dict)
    after: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    zeros: tuple[str, ...] = ()
    nets: dict[str, dict[str, int]] = field(default_factory=dict)
    bit_cycles: int = 0

    @property
    def count(self) -> int:
        """Number of expected words of all outputs together."""
        return sum(map(len, self.outputs.values()))


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
    component: Any = only_described(variant.build())
    if name in SMALL:
        arrays = _small(variant, component, count, seed)
    else:
        arrays = _MAKERS[name](component, count, seed)
    interface = arrays.interface or interface_of(component)
    ports = {port.name: port for port in interface.inputs + interface.outputs}
    ports |= {s.name: s.payload for s in interface.streams_in + interface.streams_out}
    return GoldenVectors(
        interface=interface,
        latency=0 if interface.has_streams or arrays.bit_cycles else component.latency,
        inputs={name: words_of_port(ports[name], value) for name, value in arrays.inputs.items()},
        outputs={name: words_of_port(ports[name], value) for name, value in arrays.outputs.items()},
        care={name: words_of_port(ports[name], value) for name, value in arrays.care.items()},
        after={key: np.asarray(counts).tolist() for key, counts in arrays.after.items()},
        answers=dict(arrays.answers),
        zeros=arrays.zeros,
        nets={name: dict(nets) for name, nets in arrays.nets.items()},
        bit_cycles=arrays.bit_cycles,
    )


def _dot(unit: Any, count: int, seed: int) -> Arrays:
    assert isinstance(unit, DotProduct | ExactDotProduct)
    a, b, c = dot_vectors(unit.spec, count, seed=seed)
    d = fused_dot(a, b, c, unit.spec)
    return Arrays(inputs={"a": a, "b": b, "c": c}, outputs={"d": d})


def _machine(unit: Any, count: int, seed: int) -> Arrays:
    terms: int = getattr(unit, "k", None) or unit.spec.k
    inputs, d = unit_vectors(unit.spec, terms, count, seed=seed)
    return Arrays(inputs=inputs, outputs={"d": d})


def _int_dot(unit: Any, count: int, seed: int) -> Arrays:
    assert isinstance(unit, IntDotProduct)
    spec = unit.spec
    a, b, c = int_vectors(spec.k, spec.signed_a, spec.signed_b, count, seed=seed)
    return Arrays(inputs={"a": a, "b": b, "c": c}, outputs={"d": int_results(spec, a, b, c)})


def _small(variant: Variant, unit: Any, count: int, seed: int) -> Arrays:
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
        return Arrays(inputs=inputs, outputs={"d": result})
    flags = ("less", "equal", "unordered")
    return Arrays(inputs=inputs, outputs={f: result >> i & 1 for i, f in enumerate(flags)})


def _tile(unit: Any, count: int, seed: int) -> Arrays:
    """Return traffic of a matrix unit with streams."""
    assert isinstance(unit, MatrixUnit)
    emit_rate = 0.5
    beats = max(int(count / emit_rate) // (unit.config.m * unit.config.n), LEAST)
    traffic = make_traffic(unit.config, beats=beats, seed=seed, emit_rate=emit_rate)
    return Arrays(inputs=traffic.inputs, outputs={"o": traffic.d})


def _int_tile(unit: Any, count: int, seed: int) -> Arrays:
    assert isinstance(unit, IntTile)
    beats = tile_vectors(unit.config, count, seed=seed)
    d = tile_results(unit.config, beats)
    known = slice(0, count - unit.config.pipeline - 1)
    outputs = {"d": d[known], "done": beats["valid"][known]}
    return Arrays(inputs=late_c(unit.config, beats), outputs=outputs)


def _vector(unit: Any, count: int, seed: int) -> Arrays:
    """Return commands of a vector unit; only the bytes that it writes have a value."""
    assert isinstance(unit, VectorUnit)
    config = unit.config
    commands = make_commands(config, count=max(count // _MEAN_REPEATS, LEAST), seed=seed)
    writes, _ = expected_writes(config, commands)
    data, enable = (np.stack([getattr(w, name) for w in writes]) for name in ("data", "enable"))
    mask = np.packbits(enable.astype(bool), axis=1, bitorder="little")
    every = np.full_like(mask, 0xFF)  # there are at least four lanes, so eight bits
    cared = np.where(enable, 0xFF, 0).astype(np.uint8)
    return Arrays(
        inputs=as_streams(config, commands),
        outputs={"o": {"data": _numbers(data), "enable": _numbers(mask)}},
        care={"o": {"data": _numbers(cared), "enable": _numbers(every)}},
    )


def _numbers(octets: np.ndarray) -> np.ndarray:
    """Return rows of bytes, the lowest first, as numbers, or as rows of 64-bit words if longer."""
    rows, size = octets.shape
    words = np.zeros((rows, round_up(size, 8)), np.uint8)
    words[:, :size] = octets
    numbers = words.view(np.uint64)
    return numbers[:, 0] if size <= 8 else numbers


def _im2col(unit: Any, count: int, seed: int) -> Arrays:
    """Return loads from random images; a request outside of the image has no address."""
    assert isinstance(unit, Im2Col)
    config, rng = unit.config, np.random.default_rng(seed)
    instructions = list(loads(config, count // _ROWS_EACH + 1, rng))
    c0 = config.c0_bytes // 2
    images = [rng.integers(0, 1 << 16, (*i.shape, c0), np.uint16) for i in instructions]
    fetch, care = _pixels(config, [i.walk(config.address_bits) for i in instructions])
    rows = [i.fractals(image) for i, image in zip(instructions, images, strict=True)]
    return Arrays(
        inputs=load_streams(config, instructions, images, rng),
        outputs={"fetch": fetch, "o": words(np.concatenate(rows), config)},
        care={"fetch": care},
    )


def _col2im(unit: Any, count: int, seed: int) -> Arrays:
    """Return additions to random images; a write outside of the image has no value."""
    assert isinstance(unit, Col2Im)
    config = unit.config
    dtype = np.float16 if unit.format.name == "fp16" else np.float32
    groups = list(additions(config, count // _ROWS_EACH + 1, np.random.default_rng(seed)))
    drawn = draw_additions(config, dtype, groups, seed=seed)
    fetch, care = _pixels(config, drawn.walks)
    inside = np.concatenate([walk.inside for walk in drawn.walks])[:, None]
    cared = np.broadcast_to(np.where(inside, 0xFF, 0), (len(inside), config.c0_bytes))
    sums = words(np.concatenate(drawn.sums), config)
    return Arrays(
        inputs=addition_streams(config, drawn.instructions, drawn.pixels, drawn.fractals),
        outputs={"fetch": fetch, "o": {"pixels": fetch, "rows": sums}},
        care={
            "fetch": care,
            "o": {"pixels": care, "rows": words(cared.astype(np.uint8), config)},
        },
    )


def _pixels(
    config: ConversionConfig, walks: Sequence[Walk]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return the requests for the pixels of instructions, and the bits that have a value."""
    inside = np.concatenate([walk.inside for walk in walks]).reshape(-1, config.rows)
    address = np.concatenate([walk.address for walk in walks]).reshape(-1, config.rows)
    known = np.where(inside, (1 << config.address_bits) - 1, 0)
    return (
        {"address": address & known, "inside": inside.astype(np.uint8)},
        {"address": known, "inside": np.ones_like(inside, np.uint8)},
    )


def _block_dot(unit: Any, count: int, seed: int) -> Arrays:
    operands = block_vectors(unit.spec, count, seed=seed)
    d = fused_dot(**operands, spec=unit.spec)
    return Arrays(inputs=port_values(unit.spec, operands), outputs={"d": d})


_MAKERS: dict[str, Callable[[Any, int, int], Arrays]] = {
    "dot": _dot,
    "blockdot": _block_dot,
    "intdot": _int_dot,
    "machine": _machine,
    **dict.fromkeys(("cube", "m3xu", "simd2"), _tile),
    "simd2-int": _int_tile,
    "mma": instructions,
    "vector": _vector,
    "scu-im2col": _im2col,
    "scu-col2im": _col2im,
    "axi-stream": bus.packets,
    "axi-lite": bus.accesses,
    "serial": bus.requests,
    **{name: maker for module in registered("vectors") for name, maker in module.MAKERS.items()},
}

#: The units for which there are golden vectors.
WITH_VECTORS = (*_MAKERS, *SMALL)
