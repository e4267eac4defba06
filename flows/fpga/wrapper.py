"""Top modules of FPGA designs: a component on the pins of a board.

A component whose ports are all named after pins of the board is connected to them. Any other
component gets a registered wrapper: a shift chain that one pin feeds gives every input, and every
output goes into a register and from there into one pin. So synthesis removes no logic, the design
needs four pins, and every path of the component begins and ends at a register.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from amaranth.back import verilog as verilog_backend
from amaranth.hdl import (
    Cat,
    ClockDomain,
    ClockSignal,
    Const,
    Elaboratable,
    Instance,
    Module,
    ResetSignal,
    Shape,
    Signal,
    Value,
)
from amaranth.lib import wiring

from vitruvian.flows.fpga.board import FpgaBoard
from vitruvian.hdl.bus.clock import CLOCK_PORTS

#: The pins of a board that are inputs of the FPGA.
INPUTS = ("rx",)

#: Name of the top module.
TOP = "board_top"

#: Clock cycles of the reset after the configuration of the FPGA.
_RESET_CYCLES = 16
#: Output bits that one LUT of the wrapper joins with its neighbour.
_FOLD = 3


@dataclass(frozen=True)
class WrapperPort:
    """A port of an emitted Verilog module.

    Members
    -------
    name : str
    width : int
        Bits.
    output : bool
        True for an output of the component.
    """

    name: str
    width: int
    output: bool


def ports_of(component: wiring.Component) -> list[WrapperPort]:
    """Return the ports of a component by their Verilog names, without clock and reset."""
    return [
        WrapperPort("__".join(map(str, path)), width, member.flow is wiring.Out)
        for path, member, _ in component.signature.flatten(component)
        if (width := Shape.cast(member.shape).width)
    ]


class Top(Elaboratable):
    """The top module of an FPGA design, with the clock of the board and a reset after power-on.

    Parameters
    ----------
    module : str
        Name of the component's Verilog module.
    ports : sequence of WrapperPort
        Ports of the component without ``clk`` and ``rst``. ``aclk`` and ``aresetn`` of a component
        with an AXI bus get the clock and the reset of the board, too.
    controls : collection of str
        Those of "clk" and "rst" that are ports of the module, which combinational units lack.

    Attributes
    ----------
    wrapped : bool
        True if the component is in a registered wrapper, False if its ports are on pins.
    pins : dict of str to Signal
        The ports of the top module without the clock.
    own_luts, own_ffs : int
        LUTs and flip-flops of the registered wrapper, which the component does not need. If the
        component begins with registers, Yosys merges some of them with those of the wrapper.
    """

    def __init__(
        self,
        *,
        module: str,
        ports: Sequence[WrapperPort],
        board: FpgaBoard,
        controls: Collection[str],
    ):
        names = {port.name for port in ports}
        self._module, self._controls = module, {*controls, *names.intersection(CLOCK_PORTS)}
        self._ports = ports = [port for port in ports if port.name not in CLOCK_PORTS]
        self.wrapped = not all(
            port.width <= len(board.pins.get(port.name, ()))
            and port.output == (port.name not in INPUTS)
            for port in ports
        )
        self._led_off = 1 - board.led_on
        self._inputs = [p for p in self._ports if not p.output]
        self._outputs = [p for p in self._ports if p.output]
        self._clk = Signal(name="clk")
        outer = (
            [WrapperPort("rx", 1, False), WrapperPort("tx", 1, True)]
            if self.wrapped
            else self._ports
        )
        self.pins = {port.name: Signal(port.width, name=port.name) for port in outer}
        ins = sum(p.width for p in self._inputs)
        outs = sum(p.width for p in self._outputs)
        self.own_luts = -(-outs // _FOLD) * self.wrapped
        self.own_ffs = (ins + outs + -(-outs // _FOLD)) * self.wrapped

    def text(self) -> str:
        """Return the top module as Verilog text; the component's module is not part of it."""
        ports = [self._clk, *self.pins.values()]
        text = verilog_backend.convert(
            self, name=TOP, ports=ports, emit_src=False, strip_internal_attrs=True
        )
        return text[text.index(f"module {TOP}") :]  # without the comment of the back end

    def elaborate(self, platform: object) -> Module:  # noqa: ARG002
        """Return the module."""
        m = Module()
        m.domains.sync = ClockDomain()
        m.d.comb += ClockSignal().eq(self._clk)
        count = Signal(range(_RESET_CYCLES + 1), reset_less=True)
        m.d.sync += count.eq(count + ~count[-1])
        m.d.comb += ResetSignal().eq(~count[-1])
        values = {port.name: Signal(port.width, name=port.name) for port in self._ports}
        connections: dict[str, Value] = {
            f"{'o' if port.output else 'i'}_{port.name}": values[port.name] for port in self._ports
        }
        clock, reset = ClockSignal(), ResetSignal()
        signals = {"clk": clock, "rst": reset, "aclk": clock, "aresetn": ~reset}
        connections |= {f"i_{name}": signals[name] for name in sorted(self._controls)}
        m.submodules.unit = Instance(self._module, **connections)
        if not self.wrapped:
            for port in self._ports:
                pin, value = self.pins[port.name], values[port.name]
                dark = Const(
                    ((1 << port.width) - 1) * (port.name == "led") * self._led_off, port.width
                )
                m.d.comb += pin.eq(value ^ dark) if port.output else value.eq(pin)
            return m
        given = Cat(values[port.name] for port in self._inputs)
        results = Cat(values[port.name] for port in self._outputs)
        chain = Signal(len(given), reset_less=True)
        kept = Signal(len(results), reset_less=True)
        groups = [kept[n : n + _FOLD] for n in range(0, len(results), _FOLD)]
        folded = Signal(len(groups), reset_less=True)
        m.d.comb += given.eq(chain)
        m.d.sync += [
            chain.eq(Cat(self.pins["rx"], chain)),
            kept.eq(results),
            # Each group joins those above it, so a path has one LUT. The chain shifts up and this
            # one down: were the directions equal, the bits of a shifting unit would cancel.
            folded.eq(Cat(group.xor() for group in groups) ^ folded[1:]),
        ]
        m.d.comb += self.pins["tx"].eq(folded[0])
        return m
