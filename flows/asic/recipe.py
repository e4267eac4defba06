"""Recipes of synthesis: their conditions, and the commands of Yosys that carry them out."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vitruvian.flows.asic import gates
from vitruvian.flows.asic.liberty import Library

#: The scripts that Yosys 0.70 gives to ABC for gates and for cells, without ``&fraig``.
_GATES = "+strash;scorr;dc2;dretime;strash;&get,-n;&dch,-f;&nf;&put"
_CELLS = (
    "+strash;scorr;dc2;dretime;retime,-o,{D};strash;&get,-n;&dch,-f;&nf,{D};&put;buffer;"
    "upsize,{D};dnsize,{D};stime,-p"
)
#: That for cells around full adders at a tight target: the logic is rewritten first.
_AROUND_ADDERS = (
    "+strash;ifraig;scorr;dc2;dc2;balance;rewrite;refactor;balance;rewrite;rewrite,-z;balance;"
    "refactor,-z;rewrite,-z;balance;strash;&get,-n;&dch,-f;&nf,{D};&put;buffer;upsize,{D};"
    "dnsize,{D};stime,-p"
)

#: Modules that only pass operands or hold them at zero (``hdl.fp.parts.isolation``).
_ISOLATION = "*isolation_*"


@dataclass(frozen=True, kw_only=True)
class SynthesisRecipe:
    """The conditions under which a design is mapped.

    Parameters
    ----------
    driving_cell : str
        Library cell that drives every input.
    load_ff : float
        Load on every output, femtofarads (the unit of ABC's ``set_load``).
    booth : bool
        If True, run Yosys' ``booth`` before technology mapping. The published recipe does not.
    sweep : bool
        If False, ABC leaves out its SAT sweeping (``&fraig``), which takes minutes and more
        on wide windows and wide multipliers and changes areas by a few per cent.
    adders : bool
        If True, use the library's full adders. The published recipe does not.
    clock_gates : int
        The least number of registers with the same enable that get a gated clock; 0 for no clock
        gates, as in the published recipe.
    avoid : tuple of str
        Cells of the library that the design must not have.
    """

    driving_cell: str = "BUF_X4"
    load_ff: float = 5.0
    booth: bool = False
    sweep: bool = True
    adders: bool = False
    clock_gates: int = 0
    avoid: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the parameters without those that only other recipes have."""
        usual = {"sweep": True, "adders": False, "clock_gates": 0, "avoid": ()}
        return {k: value for k, value in asdict(self).items() if usual.get(k) != value}

    def dont_use(self) -> str:
        """Return the options of Yosys' commands that name the cells to avoid."""
        return "".join(f" -dont_use {cell}" for cell in self.avoid)

    def constraint(self) -> str:
        """Return the text of ABC's constraint file."""
        return f"set_driving_cell {self.driving_cell}\nset_load {self.load_ff:g}\n"

    def conditions(self) -> dict[str, Any]:
        """Return the surroundings of a design, as static timing takes them."""
        return {"driving_cell": self.driving_cell, "load_ff": self.load_ff}


def gating_commands(recipe: SynthesisRecipe, library: Library) -> list[str]:
    """Return the commands that insert clock gates; the second one maps inverted enables."""
    if not recipe.clock_gates:
        return []
    return [gates.command(library, recipe.clock_gates), "simplemap"]


def _apart(gating: Sequence[str]) -> list[str]:
    """Return the command that keeps the isolation of operands apart, if clocks are gated."""
    return [f"setattr -mod -set keep_hierarchy 1 {_ISOLATION}"] if gating else []


def _joined(gating: Sequence[str]) -> list[str]:
    """Return the commands that put a mapped design together again."""
    if not gating:
        return []
    return [f"setattr -mod -unset keep_hierarchy {_ISOLATION}", "flatten -noscopeinfo"]


def usual_script(
    top: str,
    liberty: Path,
    targets_ps: Sequence[int],
    recipe: SynthesisRecipe,
    gating: Sequence[str] = (),
) -> list[str]:
    """Return the commands of the usual recipe.

    Parameters
    ----------
    gating : sequence of str
        Result of ``gating_commands``.
    """
    lines = ["read_rtlil design.il", f"hierarchy -check -top {top}", *_apart(gating)]
    booth = " -booth" if recipe.booth else ""
    if recipe.sweep:
        lines.append(f"synth -flatten{booth} -top {top}")
    else:
        lines += [f"synth -flatten{booth} -noabc -top {top}", f"abc -script {_GATES}", "opt -fast"]
    lines += gating
    script = "" if recipe.sweep else f" -script {_CELLS}"
    avoid = recipe.dont_use()
    lines.append(f'dfflibmap -liberty "{liberty}"{avoid}')
    if len(targets_ps) > 1:
        lines.append("design -save unmapped")
    for number, target in enumerate(targets_ps):
        # ``abc`` replaces the design, so each further target starts from the saved one.
        if number:
            lines.append("design -load unmapped")
        lines += [
            f"log @@TARGET {target}",
            f'abc -liberty "{liberty}" -constr constraint -D {target}{script}{avoid}',
            *_joined(gating),
            "opt_clean -purge",
            f'tee -q -o stat_{target}.json stat -json -liberty "{liberty}"',
            f"write_json netlist_{target}.json",
        ]
    return lines


def adders_script(top: str, liberty: Path, written: bool, gating: Sequence[str] = ()) -> list[str]:
    """Return the commands that make gates and full adders of a design, as ``found.json``.

    If ``written`` is true, they look in the gates as they were written, not after ABC.
    """
    return [
        f'read_liberty -lib -ignore_miss_func "{liberty}"',
        "read_rtlil design.il",
        f"hierarchy -check -top {top}",
        *_apart(gating),
        f"synth -flatten{' -noabc' if written else ''} -top {top}",
        *gating,
        "extract_fa -fa",
        "techmap -map adders.v",
        "techmap",
        "opt_clean",
        *([] if written else ["abc", "opt -fast"]),
        "clean",
        "write_json found.json",
    ]


def around_script(
    top: str, liberty: Path, target: int, written: bool, gating: Sequence[str] = ()
) -> list[str]:
    """Return the commands that map everything around the full adders to cells."""
    script = f" -script {_AROUND_ADDERS}" if written else ""
    return [
        "design -reset",
        f"read_json oriented_{target}.json",
        f"hierarchy -top {top}",
        "opt_expr",
        "opt_merge",
        "opt_clean",
        f"log @@TARGET {target}",
        f'dfflibmap -liberty "{liberty}"',
        f'abc -liberty "{liberty}" -constr constraint -D {target}{script}',
        *_joined(gating),
        "opt_clean -purge",
        f'tee -q -o stat_{target}.json stat -json -liberty "{liberty}"',
        f"write_json netlist_{target}.json",
    ]
