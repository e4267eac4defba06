"""Measure the area of multiply-accumulate units of other open projects with both recipes.

    python benchmarks/area_peers.py vortex --sources DIR
    python benchmarks/area_peers.py ours
    python benchmarks/area_peers.py --top TOP --files A.sv B.sv --macs N --sources DIR

The user clones the sources of a peer; none of them belongs to this project. The slang front end of
Yosys elaborates them, and ``flows.asic.synth`` maps the result onto cells at both delay targets,
with the usual recipe and with that of ``--adders``. A unit of several functions keeps only the one
that is compared, FP16 products that are added to an FP32 sum: the inputs that select a function are
constants. Outputs stay as they are.

Gemmini is not a peer here: it is written in Chisel, and its repository has no Verilog.
"""

import argparse
import csv
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vitruvian.common.errors import UserError, WorkError
from vitruvian.flows.asic import sta, synth
from vitruvian.flows.asic.cells import CellLibrary, library
from vitruvian.flows.asic.measure import TARGETS_PS
from vitruvian.flows.asic.pieces import parts_of
from vitruvian.flows.units import UNITS
from vitruvian.flows.yosys import run_yosys
from vitruvian.hdl.catalogue.unit import Variant

#: Recipes by their names in the table.
RECIPES = {
    "usual": synth.SynthesisRecipe(),
    "adders": synth.SynthesisRecipe(adders=True),
}
HEADER = (
    *("unit", "stages", "MACs", "usual relaxed µm²/MAC", "ns", "usual tight µm²/MAC", "ns"),
    *("adders relaxed µm²/MAC", "ns", "adders tight µm²/MAC", "ns"),
)


@dataclass(frozen=True, kw_only=True)
class Peer:
    """One unit of another project.

    Parameters
    ----------
    top : str
        Name of the top module.
    files, includes : sequence of str
        Source files in the order of compilation, and folders of included files; both are relative
        to the folder of the sources.
    macs, stages : int
        Multiply-accumulates a cycle, and stages of logic with registers between them.
    parameters, defines : mapping of str to str
        Parameters of the top module, and macros of the preprocessor.
    ties : mapping of str to str
        Input of the top module -> the constant that it has, as Yosys writes it (``3'd2``).
    repository, commit, preparation : str
        Origin of the sources, and what must be done after they were cloned.
    """

    top: str
    files: Sequence[str]
    macs: int
    stages: int = 1
    includes: Sequence[str] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    defines: Mapping[str, str] = field(default_factory=dict)
    ties: Mapping[str, str] = field(default_factory=dict)
    repository: str = ""
    commit: str = ""
    preparation: str = ""


def _cvfpu(pipeline: str, registers: int) -> Peer:
    """Return the fused multiply-add unit with FP16 and FP32; the formats have the order of FPnew.

    The registers in front of the multiplier would keep the format as a value that can change, so
    the only pipeline here has its registers inside.
    """
    cells = "src/common_cells"
    return Peer(
        top="fpnew_fma_multi",
        files=(
            "src/fpnew_pkg.sv",
            *(f"{cells}/src/{name}.sv" for name in ("cf_math_pkg", "lzc")),
            *(f"src/fpnew_{name}.sv" for name in ("classifier", "rounding", "fma_multi")),
        ),
        includes=(f"{cells}/include",),
        parameters={
            "FpFmtConfig": "5'b10100",
            "NumPipeRegs": str(registers),
            "PipeConfig": f"fpnew_pkg::{pipeline}",
        },
        ties={
            "src_fmt_i": "3'd2",
            "src2_fmt_i": "3'd0",
            "dst_fmt_i": "3'd0",
            "rnd_mode_i": "3'd0",
            "op_i": "4'd0",
            "op_mod_i": "1'd0",
            "is_boxed_i": "15'h7fff",
            "flush_i": "1'd0",
            "reg_ena_i": f"{max(registers, 1)}'d0",
        },
        macs=1,
        stages=registers + 1,
        repository="https://github.com/openhwgroup/cvfpu",
        commit="0ad2cd7ff265fe6c9852faa87d296931e2cf380d",
        preparation="git submodule update --init src/common_cells",
    )


def _vortex(words: int) -> Peer:
    """Return the TFR dot product with ``words`` registers of 32 bits for each operand, FP16 only.

    It has as many threads as a core needs for that size, and a register behind its last stage.
    """
    fused = "hw/rtl/tcu/tfr/VX_tcu"
    stages = (
        *("classifier", "lane_mask", "max_exp", "mul_exp", "mul_f16", "mul_f8", "mul_int"),
        *("mul_join", "align", "acc", "norm_round", "pipe_register"),
    )
    libraries = ("csa_tree", "ks_adder", "lzc", "find_first", "pipe_register", "wallace_mul")
    adders = ("csa_32", "csa_42")
    disabled = ("TF32", "BF16", "FP8", "INT", "SPARSE")
    return Peer(
        top="VX_tcu_fedp_tfr",
        files=(
            "hw/rtl/VX_gpu_pkg.sv",
            "hw/rtl/tcu/VX_tcu_pkg.sv",
            *(f"hw/rtl/libs/VX_{name}.sv" for name in (*libraries, *adders)),
            *(f"{fused}_tfr_{name}.sv" for name in stages),
            f"{fused}_fedp_tfr.sv",
        ),
        includes=("hw", "hw/rtl"),
        parameters={"N": str(words)},
        defines={
            "SYNTHESIS": "1",
            "ASIC": "1",
            "NUM_THREADS": str(words * words),
            "EXT_TCU_ENABLE": "1",
            "TCU_TYPE_TFR": "1",
            **{f"TCU_{name}_DISABLE": "1" for name in disabled},
        },
        ties={"fmt_s": "4'd1", "fmt_d": "4'd0"},
        macs=2 * words,
        stages=4,
        repository="https://github.com/vortexgpgpu/vortex",
        commit="9e350e2e83962cfda0d7a3ea935668a43fd7479c",
        preparation="python ci/gen_config.py --config hw/VX_config.toml --output hw/VX_config.vh "
        "--format verilog, and the same for VX_types with --resolved",
    )


#: The peers that can be named; each may have several units.
PEERS: dict[str, dict[str, Peer]] = {
    "cvfpu": {
        "cvfpu FMA": _cvfpu("BEFORE", 0),
        "cvfpu FMA, registers inside": _cvfpu("INSIDE", 1),
    },
    "vortex": {
        "Vortex TFR, 4 products": _vortex(2),
        "Vortex TFR, 8 products": _vortex(4),
    },
}
#: Our own units that are measured for comparison: options of ``dot``.
OURS = {"a100, K = 8": {"preset": "a100", "k": 8, "pipeline": 3}}


def missing(peer: Peer, sources: Path) -> list[str]:
    """Return the files and folders of a peer that do not exist, as paths below ``sources``."""
    files = [name for name in peer.files if not (sources / name).is_file()]
    return files + [name for name in peer.includes if not (sources / name).is_dir()]


def elaborate(peer: Peer, sources: Path) -> str:
    """Return a peer as RTLIL.

    Raises
    ------
    UserError
        If files are missing.
    SynthesisError
        If Yosys rejects the sources.
    """
    lacking = missing(peer, sources)
    if lacking:
        origin = f" of {peer.repository} at {peer.commit[:12]}" if peer.repository else ""
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        done = f" (after: {peer.preparation})" if peer.preparation else ""
        raise UserError(f"sources must be a folder with {lacking[0]}{more}{origin}{done}")
    root = sources.resolve()
    lines = ["--single-unit", f"--top {peer.top}"]
    lines += [f'-I "{root / folder}"' for folder in peer.includes]
    lines += [f"-D {name}={value}" for name, value in peer.defines.items()]
    lines += [f'"{root / name}"' for name in peer.files]
    return run_yosys("files.f", "\n".join(lines) + "\n", script(peer), "peer.il", task="elaborate")


def script(peer: Peer) -> list[str]:
    """Return the Yosys commands that read ``files.f``, tie inputs and write ``peer.il``."""
    ties = [
        command
        for name, value in peer.ties.items()
        for command in (f"delete -port w:{name}", f"connect -set {name} {value}")
    ]
    # In a file of options, the quotation mark of a Verilog constant would begin a text.
    parameters = "".join(f" -G {name}={value}" for name, value in peer.parameters.items())
    return [
        f"read_slang -f files.f{parameters}",
        f"hierarchy -check -top {peer.top}",
        f"cd {peer.top}",
        *ties,
        "cd ..",
        # Paths of source files would make equal designs differ.
        "setattr -unset src -unset hdlname */* %n %n",
        "setattr -mod -unset src -unset hdlname",
        "write_rtlil peer.il",
    ]


def measure(rtlil: str, top: str, cells: CellLibrary, macs: int) -> list[float]:
    """Return µm² per MAC and ns, for each recipe and then for each delay target."""
    figures: list[float] = []
    for name, recipe in RECIPES.items():
        for target in TARGETS_PS:
            # One target at a time, because a run that is interrupted keeps those that are done.
            design = synth.synthesize(
                rtlil, top=top, liberty=cells.path, targets_ps=(target,), recipe=recipe
            )[target]
            delay = sta.analyse(
                design.netlist,
                cells.cells,
                driving_cell=recipe.driving_cell,
                load_ff=recipe.load_ff,
            ).delay_ps
            if delay is None:
                raise WorkError(f"{top!r} must have a path from an input or a register")
            figures += [round(design.area_um2 / macs, 1), round(delay / 1000, 2)]
            print(f"{top}: {name}, {target} ps: {figures[-2:]}", file=sys.stderr, flush=True)
    return figures


def rows(options: argparse.Namespace, cells: CellLibrary) -> list[list[object]]:
    """Return the rows that the command line asks for."""
    found: list[list[object]] = []
    if options.peer == "ours":
        for label, given in OURS.items():
            variant = Variant(UNITS["dot"], UNITS["dot"].default(given))
            part = parts_of(variant, "whole")[0]
            macs = variant.macs or 1
            figures = measure(part.rtlil, part.top.lstrip("\\"), cells, macs)
            found.append([label, given["pipeline"] + 1, macs, *figures])
        return found
    if options.peer is None:
        given = _given(options)
        chosen = {given.top: given}
    else:
        chosen = PEERS[options.peer]
    for label, peer in chosen.items():
        figures = measure(elaborate(peer, options.sources), peer.top, cells, peer.macs)
        found.append([label, peer.stages, peer.macs, *figures])
    return found


def _given(options: argparse.Namespace) -> Peer:
    """Return the peer that the options describe one by one."""
    if not options.top or not options.files:
        raise UserError(f"peer must be ours, {', '.join(PEERS)}, or --top with --files")
    return Peer(
        top=options.top,
        files=options.files,
        includes=options.include,
        macs=options.macs,
        stages=options.stages,
        parameters=_pairs(options.parameter),
        defines=_pairs(options.define),
        ties=_pairs(options.tie),
    )


def _pairs(given: Sequence[str]) -> dict[str, str]:
    """Return ``NAME=VALUE`` texts as a mapping."""
    for text in given:
        if "=" not in text:
            raise UserError(f"an assignment must be NAME=VALUE, not {text!r}")
    return dict(text.split("=", 1) for text in given)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", nargs="?", choices=("ours", *PEERS), help="Measure this peer.")
    parser.add_argument("--sources", type=Path, default=Path(), help="Folder of the clone.")
    parser.add_argument("--liberty", default="nangate45", help="Cells (default: nangate45).")
    parser.add_argument("--out", metavar="FILE", help="Add the rows to this file (CSV).")
    parser.add_argument("--top", help="Top module of any other unit.")
    parser.add_argument("--macs", type=int, default=1, help="Its multiply-accumulates a cycle.")
    parser.add_argument("--stages", type=int, default=1, help="Its stages of logic.")
    for name, meaning in (("files", "source files, in order"), ("include", "folders of headers")):
        parser.add_argument(f"--{name}", nargs="*", default=[], help=f"Its {meaning}.")
    for name in ("parameter", "define", "tie"):
        text = f"NAME=VALUE of a {name}; may be repeated."
        parser.add_argument(f"--{name}", action="append", default=[], help=text)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 2 for a mistake of the user, and 1 if the work fails."""
    options = _parser().parse_args(arguments)
    try:
        if options.macs < 1:
            raise UserError(f"macs must be positive, not {options.macs}")
        found = rows(options, library(options.liberty))
    except (UserError, WorkError) as error:
        print(f"area_peers: {error}", file=sys.stderr)
        return 2 if isinstance(error, UserError) else 1
    csv.writer(sys.stdout, lineterminator="\n").writerows([HEADER, *found])
    if options.out:
        new = not Path(options.out).exists()
        with open(options.out, "a", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([*([HEADER] if new else []), *found])
    return 0


if __name__ == "__main__":
    sys.exit(main())
