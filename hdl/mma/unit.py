"""A matrix unit that runs instructions."""

from dataclasses import replace
from typing import TYPE_CHECKING

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from vitruvian.common.validate import check_int

from ..cube.config import MatrixUnitConfig
from ..cube.ports import beat_layout, fractal_layout
from ..cube.presets import CONFIGS
from ..cube.unit import MatrixUnit
from .issue import Issue, fetch_layout, word_layout

#: Cycles from an instruction to the head of the queue.
QUEUE_CYCLES = 2

_SYSTOLIC = replace(CONFIGS["m3xu"], dataflow="systolic")
#: Units that run instructions, by name. Each runs any list of instructions without a bubble. A
#: systolic unit needs more slots for this than it has by default: one for each cycle of its latency
#: and one more.
UNITS = {
    "m3xu": CONFIGS["m3xu"],
    "m3xu_pipelined": CONFIGS["m3xu_pipelined"],
    "m3xu_systolic": replace(_SYSTOLIC, slots=_SYSTOLIC.latency_cycles + 1),
    "m3xu_fp64": CONFIGS["m3xu_fp64"],
    "fp64": MatrixUnitConfig(m=8, n=4, k=8, precisions=("fp64",), output="fp64"),
    "fp64_12bit": MatrixUnitConfig(
        m=8, n=4, k=10, precisions=("fp64",), output="fp64", multiplier_bits=12
    ),
}


class MmaUnit(wiring.Component):
    """Unit that runs instructions: ``Issue``, a queue of issued beats, and a ``MatrixUnit``.

    Access and execution are decoupled. ``fetch`` requests operands ahead of time, and ``ab`` and
    ``c`` deliver them in the order of the requests, with any delay. A beat of the matrix unit
    consists of an item of the queue and an item of ``ab``.

    Parameters
    ----------
    config : MatrixUnitConfig
        The parameters of the matrix unit.
    ahead : int
        Number of beats that may be requested before the matrix unit has taken them, 2 to 64. For
        one beat per cycle it must be at least the latency of a fetch in cycles.

    Members
    -------
    i : In(stream.Signature(word_layout()))
        Instructions.
    fetch : Out(stream.Signature(fetch_layout(config)))
        Requests for the operands of one beat each.
    ab : In(stream.Signature({a: M × bus_bits, b: N × bus_bits}))
        Fractals of A and B, one of each for each item of ``fetch``.
    c, o : In, Out(stream.Signature(M × N × word_bits))
        C and D fractals, as in ``MatrixUnit``: two for each complex tile.
    illegal : Out(1)
        Set if an opcode that the unit does not have was dropped since reset.

    Latency
    -------
    ``latency = QUEUE_CYCLES + config.latency_cycles``. A list of instructions takes the steps of
    all its beats and ``latency`` cycles more, from the first instruction to the last result, both
    included. This holds for any precisions under three conditions: operands arrive in time, the
    tiles of a group take at least ``pipeline + 1`` steps, and there are slots for the unit's
    latency and one beat more.

    Raises
    ------
    TypeError, ValueError
        If ``Issue`` does not accept ``config``, or if ``ahead`` is out of range.
    """

    shared = MatrixUnit.shared

    if TYPE_CHECKING:
        i: stream.Interface
        fetch: stream.Interface
        ab: stream.Interface
        c: stream.Interface
        o: stream.Interface
        illegal: Signal

    def __init__(self, *, config: MatrixUnitConfig, ahead: int = 4):
        if not isinstance(config, MatrixUnitConfig):
            raise TypeError(f"config must be a MatrixUnitConfig, not {config!r}")
        check_int("ahead", ahead, 2, 64)
        self.config, self.ahead = config, ahead
        self.latency = QUEUE_CYCLES + config.latency_cycles
        members = beat_layout(config).members
        fractals = stream.Signature(fractal_layout(config))
        operands = data.StructLayout({name: members[name] for name in ("a", "b")})
        super().__init__(
            {
                "i": In(stream.Signature(word_layout())),
                "fetch": Out(stream.Signature(fetch_layout(config))),
                "ab": In(stream.Signature(operands)),
                "c": In(fractals),
                "o": Out(fractals),
                "illegal": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.issue = issue = Issue(config=self.config)
        m.submodules.unit = unit = MatrixUnit(config=self.config)
        issued = issue.o.payload
        width = len(Value.cast(issued.control))
        m.submodules.queue = queue = SyncFIFOBuffered(width=width, depth=self.ahead)

        wiring.connect(m, wiring.flipped(self.i), issue.i)
        m.d.comb += [
            self.fetch.payload.eq(issued.fetch),
            self.fetch.valid.eq(issue.o.valid & queue.w_rdy),
            queue.w_data.eq(Value.cast(issued.control)),
            queue.w_en.eq(issue.o.valid & self.fetch.ready),
            issue.o.ready.eq(queue.w_rdy & self.fetch.ready),
            self.illegal.eq(issue.illegal),
        ]
        control = data.View(issued.control.shape(), queue.r_data)
        beat = unit.i.payload
        m.d.comb += [
            Value.cast(getattr(beat, name)).eq(Value.cast(getattr(source, name)))
            for source in (control, self.ab.payload)
            for name in source.shape().members
        ]
        m.d.comb += [
            unit.i.valid.eq(queue.r_rdy & self.ab.valid),
            queue.r_en.eq(unit.i.ready & self.ab.valid),
            self.ab.ready.eq(unit.i.ready & queue.r_rdy),
        ]
        wiring.connect(m, unit.c, wiring.flipped(self.c))
        wiring.connect(m, wiring.flipped(self.o), unit.o)
        return m
