"""Put a matrix unit into a LiteX system on chip: its registers at an address of the bus.

The system has a serial bridge, the matrix unit behind AXI4-Lite, and two CSRs of its own: one holds
the unit in reset, the other counts the accesses that the unit has answered with an error. LiteX
writes the Verilog of the system and the scripts for Vivado, and lists all addresses in ``csr.csv``.

    pip install litex==2024.12
    python examples/litex_cube.py [--rtl FILE] [--out build/litex]

Without ``--rtl``, Vitruvian writes the Verilog of its unit ``axi-lite`` first.
"""

# Migen gives modules their attributes at run time, and LiteX need not be installed.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportOperatorIssue=false

import argparse
import re
import sys
from pathlib import Path
from typing import Any

#: Bytes of the unit's registers.
REGISTER_BYTES = 1 << 10

#: Pins of an Arty A7; another board needs another list.
PINS = (
    ("clk100", "E3"),
    ("cpu_reset", "C2"),
    ("serial_tx", "D10"),
    ("serial_rx", "A9"),
)


def unit_verilog(folder: Path) -> Path:
    """Write the Verilog of the default unit behind AXI4-Lite into a folder; return its path."""
    from vitruvian.common.errors import UserError
    from vitruvian.flows.units import UNITS, variants
    from vitruvian.flows.verilog import emit

    if "axi-lite" not in UNITS:
        raise UserError("--rtl must name the Verilog of a unit behind AXI4-Lite")
    (variant,) = variants("axi-lite", {})
    return emit.write(variant, folder)


def top_of(text: str) -> str:
    """Return the name of the module whose ports are those of AXI4-Lite.

    Raises
    ------
    ValueError
        If no module has them.
    """
    for match in re.finditer(r"(?m)^module (\w+)\s*\(([^;]*)\);", text):
        if "aresetn" in match[2] and "s_axi_awaddr" in match[2]:
            return match[1]
    raise ValueError("the Verilog must have a module with the ports aresetn and s_axi_awaddr")


def make_unit(platform: Any, rtl: Path) -> Any:
    """Return a LiteX module that holds the unit of a Verilog file.

    Its attribute ``bus`` is an AXI4-Lite interface with the addresses of the unit's registers.

    Parameters
    ----------
    rtl : Path
        Verilog of a unit behind AXI4-Lite.
    """
    from litex.gen import LiteXModule
    from litex.soc.interconnect import axi
    from litex.soc.interconnect.csr import CSRField, CSRStatus, CSRStorage
    from migen import ClockSignal, If, Instance, ResetSignal, Signal

    class MatrixUnit(LiteXModule):
        def __init__(self) -> None:
            self.bus = bus = axi.AXILiteInterface(data_width=32, address_width=32)
            self.control = CSRStorage(
                fields=[CSRField("reset", size=1, description="Hold the unit in reset.")]
            )
            self.errors = CSRStatus(32, description="Accesses that were answered by an error.")
            refused = Signal(2)
            self.comb += [
                refused[0].eq(bus.b.valid & bus.b.ready & (bus.b.resp != axi.RESP_OKAY)),
                refused[1].eq(bus.r.valid & bus.r.ready & (bus.r.resp != axi.RESP_OKAY)),
            ]
            self.sync += self.errors.status.eq(self.errors.status + refused[0] + refused[1])
            held = self.control.fields.reset
            self.sync += If(held, self.errors.status.eq(0))
            ports: dict[str, Any] = {
                "i_aclk": ClockSignal("sys"),
                "i_aresetn": ~(ResetSignal("sys") | held),
            }
            for name, channel in (("aw", bus.aw), ("ar", bus.ar)):
                ports[f"i_s_axi_{name}addr"] = channel.addr[:10]
                ports[f"i_s_axi_{name}valid"] = channel.valid
                ports[f"o_s_axi_{name}ready"] = channel.ready
            ports |= {
                "i_s_axi_wdata": bus.w.data,
                "i_s_axi_wstrb": bus.w.strb,
                "i_s_axi_wvalid": bus.w.valid,
                "o_s_axi_wready": bus.w.ready,
                "o_s_axi_rdata": bus.r.data,
            }
            for name, channel in (("b", bus.b), ("r", bus.r)):
                ports[f"o_s_axi_{name}resp"] = channel.resp
                ports[f"o_s_axi_{name}valid"] = channel.valid
                ports[f"i_s_axi_{name}ready"] = channel.ready
            self.specials += Instance(top_of(rtl.read_text()), **ports)
            platform.add_source(str(rtl.resolve()))

    return MatrixUnit()


def make_soc(rtl: Path) -> Any:
    """Return a system on chip with a serial bridge and the unit at address 0x3000_0000."""
    from litex.build.generic_platform import IOStandard, Pins, Subsignal
    from litex.build.xilinx import XilinxPlatform
    from litex.soc.integration.soc import SoCRegion
    from litex.soc.integration.soc_core import SoCMini
    from migen import ClockDomain, Module

    pins, level = dict(PINS), IOStandard("LVCMOS33")
    serial = [
        Subsignal("tx", Pins(pins["serial_tx"])),
        Subsignal("rx", Pins(pins["serial_rx"])),
    ]
    io = [
        ("clk100", 0, Pins(pins["clk100"]), level),
        ("cpu_reset", 0, Pins(pins["cpu_reset"]), level),
        ("serial", 0, *serial, level),
    ]

    class Clocks(Module):
        def __init__(self, platform: Any) -> None:
            self.clock_domains.cd_sys = ClockDomain()
            self.comb += [
                self.cd_sys.clk.eq(platform.request("clk100")),
                self.cd_sys.rst.eq(~platform.request("cpu_reset")),
            ]

    class System(SoCMini):
        def __init__(self) -> None:
            platform = XilinxPlatform("xc7a35ticsg324-1L", io, toolchain="vivado")
            super().__init__(platform, clk_freq=int(100e6), ident="Vitruvian on LiteX")
            self.submodules.crg = Clocks(platform)
            self.add_uartbone(uart_name="serial")
            self.submodules.matrix_unit = make_unit(platform, rtl)
            region = SoCRegion(origin=0x3000_0000, size=REGISTER_BYTES, cached=False)
            self.bus.add_slave("matrix_unit_registers", self.matrix_unit.bus, region)

    return System()


def main(arguments: list[str] | None = None) -> int:
    """Generate the system and print where its files are."""
    parser = argparse.ArgumentParser(description="Generate a LiteX system with a matrix unit.")
    parser.add_argument("--rtl", type=Path, metavar="FILE", help="Verilog of the unit.")
    parser.add_argument("--out", type=Path, default=Path("build/litex"), metavar="FOLDER")
    options = parser.parse_args(arguments)
    try:
        from litex.soc.integration.builder import Builder
    except ImportError:
        print("error: LiteX must be installed: pip install litex==2024.12", file=sys.stderr)
        return 2
    from vitruvian.common.errors import UserError

    try:
        rtl = options.rtl or unit_verilog(options.out)
        soc = make_soc(rtl)
    except (OSError, UserError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    out = options.out
    builder = Builder(
        soc, output_dir=str(out), csr_csv=str(out / "csr.csv"), compile_software=False
    )
    builder.build(run=False, build_name="vitruvian")
    print(f"{out / 'gateware' / 'vitruvian.v'}: the system; {rtl}: the matrix unit")
    print(f"{out / 'csr.csv'}: addresses of the unit's registers and of its CSRs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
