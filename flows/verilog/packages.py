"""Describe a bundle to the tools that build systems: FuseSoC and Vivado."""

import re
from collections.abc import Sequence
from string import Template

#: Version of the packages; it is that of the RTL's interface.
VERSION = "0.1.0"

#: Delays need C++20, which some builds of Verilator do not ask for themselves. The precompiled
#: header, which some builds cannot find, is left out. A bench is short, so that compiling it
#: without optimisation saves time.
VERILATOR_FLAGS = (
    "-CFLAGS -std=c++20",
    "-CFLAGS -O0",
    "-MAKEFLAGS VK_PCH_I_FAST=",
    "-MAKEFLAGS VK_PCH_I_SLOW=",
)

_CORE = """\
CAPI=2:
name: {name}
description: "{summary}"

# fusesoc --cores-root . run --target=lint {name}
# fusesoc --cores-root . run --target=sim {name}

filesets:
  rtl:
    files: [rtl/{module}.v]
    file_type: verilogSource-2005
{filesets}
targets:
  default:
    filesets: [rtl]
    toplevel: {module}
  lint:
    flow: lint
    flow_options:
      tool: verilator
      verilator_options: [-Wall]
    filesets: [rtl]
    toplevel: {module}
{targets}"""

_TB = """\
  tb:
    files: [tb/{module}_tb.v]
    file_type: verilogSource-2005
  vectors:
    files:
{copies}
    file_type: user
"""

_SIMULATIONS = """\
  sim: &sim
    flow: sim
    flow_options:
      tool: icarus
      iverilog_options: [-g2005, -Wall, -Wno-timescale]
    filesets: [rtl, tb, vectors]
    toplevel: {module}_tb
  sim_verilator:
    <<: *sim
    flow_options:
      tool: verilator
      mode: binary
      verilator_options: [--timing, {flags}]
"""


def core(module: str, *, summary: str, vectors: Sequence[str]) -> str:
    """Return a FuseSoC core file (CAPI2) with the targets lint, sim and sim_verilator.

    Parameters
    ----------
    module : str
        Name of the unit's module.
    summary : str
        One line about the unit.
    vectors : sequence of str
        Names of the files in ``vectors/``.
    """
    # FuseSoC runs a simulation in a folder of its own, in which the bench looks for vectors/.
    copies = "\n".join(f"      - vectors/{v}: {{copyto: vectors/{v}}}" for v in vectors)
    flags = ", ".join(VERILATOR_FLAGS)
    return _CORE.format(
        name=core_name(module),
        module=module,
        summary=summary,
        filesets=_TB.format(module=module, copies=copies),
        targets=_SIMULATIONS.format(module=module, flags=flags),
    )


def core_name(module: str) -> str:
    """Return the name of a module's core: vendor, library, name and version."""
    return f"vitruvian:units:{module}:{VERSION}"


class _PackageScript(Template):
    """A text with places like ``@name``, because Tcl uses the dollar sign and braces itself."""

    delimiter = "@"


_IP = _PackageScript("""\
# Package @module as an IP for Vivado's catalogue:
#   vivado -mode batch -source package_ip.tcl
# Then add the folder ip, which this script makes beside itself, to a project's IP repositories.
set here [file dirname [file normalize [info script]]]

create_project -force package [file join $here package] -part @part
add_files [file join $here .. rtl @module.v]
set_property top @module [current_fileset]
update_compile_order -fileset [current_fileset]

ipx::package_project -root_dir [file join $here ip] -vendor vitruvian -library units \\
  -taxonomy /UserIP -import_files -force
set core [ipx::current_core]
set_property name @module $core
set_property version @version $core
set_property display_name @module $core
set_property description {@summary} $core

# Vivado infers some of the interfaces from the names of the ports; the others are inferred here.
proc infer {name ports type} {
  global core
  if {[ipx::get_bus_interfaces $name -of_objects $core] eq ""} {
    ipx::infer_bus_interface $ports $type $core
  }
}
proc set_parameter {bus name value} {
  global core
  set interface [ipx::get_bus_interfaces $bus -of_objects $core]
  if {[ipx::get_bus_parameters $name -of_objects $interface] eq ""} {
    ipx::add_bus_parameter $name $interface
  }
  set_property value $value [ipx::get_bus_parameters $name -of_objects $interface]
}
@interfaces

ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::check_integrity $core
ipx::save_core $core
close_project
""")

#: A part that every edition of Vivado knows; the packaged IP is not bound to it.
_PART = "xc7a35ticsg324-1L"


def ip_script(module: str, *, summary: str, ports: Sequence[str]) -> str:
    """Return Tcl that packages a module as an IP of Vivado.

    Ports with the names of AXI become interfaces, which ``aclk`` clocks and ``aresetn`` resets. In
    all other modules ``clk`` and ``rst`` become clock and reset, and the other ports stay as they
    are.

    Parameters
    ----------
    module : str
        Name of the module.
    summary : str
        One line about the unit.
    ports : sequence of str
        Names of the ports.
    """
    return _IP.substitute(
        module=module,
        # Braces and backslashes would end the Tcl word.
        summary=re.sub(r"[{}\\]", " ", summary),
        # Vivado takes two numbers only.
        version=VERSION.rpartition(".")[0],
        part=_PART,
        interfaces="\n".join(_interfaces(ports)),
    )


def buses_of(ports: Sequence[str]) -> list[str]:
    """Return the names of the AXI interfaces of a module, such as ``s_axi`` or ``s_axis_a``."""
    # Every interface has one of these two signals, and has it once.
    found = (re.fullmatch(r"([sm]_axis(?:_\w+)?)_tvalid|([sm]_axi)_awvalid", p) for p in ports)
    return [match[1] or match[2] for match in found if match]


def _interfaces(ports: Sequence[str]) -> list[str]:
    """Return the Tcl commands that infer the interfaces of the ports."""
    buses = buses_of(ports)
    lines: list[str] = []
    for bus in buses:
        kind = "axis" if "_axis" in bus else "aximm"
        end = r"_t[a-z]+" if kind == "axis" else r"_[a-z]+"
        own = " ".join(port for port in ports if re.fullmatch(bus + end, port))
        lines.append(f"infer {bus} {{{own}}} xilinx.com:interface:{kind}_rtl:1.0")
    clock, reset = ("aclk", "aresetn") if "aclk" in ports else ("clk", "rst")
    if clock in ports:
        lines.append(f"infer {clock} {clock} xilinx.com:signal:clock_rtl:1.0")
    if reset in ports:
        lines.append(f"infer {reset} {reset} xilinx.com:signal:reset_rtl:1.0")
        polarity = "ACTIVE_LOW" if reset == "aresetn" else "ACTIVE_HIGH"
        lines.append(f"set_parameter {reset} POLARITY {polarity}")
    lines += [f"ipx::associate_bus_interfaces -busif {bus} -clock {clock} $core" for bus in buses]
    return lines
