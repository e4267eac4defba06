"""The example for LiteX generates a system around a unit behind AXI4-Lite."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

#: A module with the ports of a unit behind AXI4-Lite, which answers nothing.
STAND_IN = """
module helper(input x); endmodule
module stand_in (
  input aclk, input aresetn,
  input [9:0] s_axi_awaddr, input s_axi_awvalid, output s_axi_awready,
  input [31:0] s_axi_wdata, input [3:0] s_axi_wstrb, input s_axi_wvalid, output s_axi_wready,
  output [1:0] s_axi_bresp, output s_axi_bvalid, input s_axi_bready,
  input [9:0] s_axi_araddr, input s_axi_arvalid, output s_axi_arready,
  output [31:0] s_axi_rdata, output [1:0] s_axi_rresp, output s_axi_rvalid, input s_axi_rready
);
endmodule
"""

needs_litex = pytest.mark.skipif(
    importlib.util.find_spec("litex") is None, reason="needs LiteX (pip install litex==2024.12)"
)


def run(root: Path, folder: Path, text: str, *before: str) -> subprocess.CompletedProcess[str]:
    """Run the example on Verilog text; ``before`` are lines of Python that run first."""
    rtl = folder / "unit.v"
    rtl.write_text(text)
    script = root / "examples" / "litex_cube.py"
    arguments = [str(script), "--rtl", str(rtl), "--out", str(folder / "out")]
    code = f"import runpy, sys\n{chr(10).join(before)}\nsys.argv = {arguments!r}\n"
    code += "runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def refused(done: subprocess.CompletedProcess[str], folder: Path) -> str:
    """Return the last line of a refusal, which leaves no files."""
    assert done.returncode == 2 and not (folder / "out").exists()
    return done.stderr.splitlines()[-1]


def test_without_litex_the_example_says_what_to_install(root: Path, tmp_path: Path):
    done = run(root, tmp_path, STAND_IN, "sys.modules['litex'] = None")
    assert refused(done, tmp_path) == "error: LiteX must be installed: pip install litex==2024.12"


@needs_litex
def test_litex_gives_the_unit_addresses_and_connects_every_port(root: Path, tmp_path: Path):
    done = run(root, tmp_path, STAND_IN)
    assert done.returncode == 0, done.stderr
    rows = [line.split(",") for line in (tmp_path / "out" / "csr.csv").read_text().splitlines()]
    found = {row[1]: row for row in rows if len(row) > 2}
    assert found["matrix_unit_registers"][2:4] == ["0x30000000", "1024"]
    assert {"matrix_unit_control", "matrix_unit_errors"} <= set(found)
    text = (tmp_path / "out" / "gateware" / "vitruvian.v").read_text()
    instance = text[text.index("stand_in ") :]
    instance = instance[: instance.index(");\n")]
    header = STAND_IN[STAND_IN.index("stand_in (") :]
    ports = header.replace(",", " ").replace(")", " ").split()
    ports = {word for word in ports if word == "aclk" or word == "aresetn" or word[:5] == "s_axi"}
    assert len(ports) == 19
    assert all(f".{port} " in instance for port in ports)
    scripts = (tmp_path / "out" / "gateware" / "vitruvian.tcl").read_text()
    assert "unit.v" in scripts


@needs_litex
def test_verilog_without_axi_is_refused_in_one_line(root: Path, tmp_path: Path):
    done = run(root, tmp_path, "module a(input x); endmodule\n")
    text = "error: the Verilog must have a module with the ports aresetn and s_axi_awaddr"
    assert refused(done, tmp_path) == text
