"""The command ``machines``: list the known matrix units, and compare them with results."""

import argparse
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from vitruvian.cli import write_json
from vitruvian.commands.machines_check import add_check, refuse_check_options, run_check
from vitruvian.commands.options import add_json
from vitruvian.table import open_console, print_table

if TYPE_CHECKING:
    from vitruvian.golden.machines import Machine, Rule

__all__ = ["register"]

_DESCRIPTION = """\
List the matrix units whose arithmetic is known, one line for each instruction and result format,
with the rule and its evidence: S, measured on silicon; V, the vendor's model, executed; P, a
peer's model, executed; D, documentation. NAME is a machine (h100), a machine and an instruction
(h100_wgmma) or a whole row (h100_wgmma_e4m3_fp32); a row is printed with all parameters.

With --check, compare golden, and RTL where a unit has the rule, with sets of results, bit for bit.
NAME is then a set STEM.npz with the codes a, b, c and d, or a folder of such files. By default, the
sets in ../shared/data are compared if they are there, and otherwise the worked examples."""

_EPILOG = """\
Example: vitruvian machines h100
         vitruvian machines b200_nvf4_ue4m3_fp32
         vitruvian machines --check measured/h100_wgmma_e4m3_fp32.npz"""


def register(name: str, commands: Any) -> None:
    """Add the command ``machines`` to the parser."""
    parser = commands.add_parser(name, description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="List only these rows, or compare these sets."
    )
    add_check(parser)
    add_json(parser, "the rows")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vitruvian.golden.machines import machines

    if options.check:
        return run_check(options)
    refuse_check_options(options)
    rows = _chosen(options.names, list(machines().values()))
    if len(rows) == 1:
        lines = _parameters(rows[0])
        print(f"{rows[0].stem}: {rows[0].maker} {rows[0].title}; evidence {rows[0].evidence}")
        console = open_console(plain_width=100)
        print_table(console, ("parameter", "value"), [(n, _word(v)) for n, v in lines.items()])
        records: list[dict[str, object]] = [{"stem": rows[0].stem, **_plain(lines)}]
    else:
        records = _groups(rows)
        header = ("machine", "instruction", "formats", "result", "rule", "evidence")
        console = open_console(plain_width=150)
        cells = [[str(record[name]) for name in header] for record in records]
        count = f"{len(rows)} combinations of {len({row.machine for row in rows})} machines"
        print_table(console, header, cells, note=count, wrap=True)
    if options.json:
        write_json(options.json, {"rows": records})
    return 0


def _chosen(names: list[str], rows: list["Machine"]) -> list["Machine"]:
    """Return the rows that the names stand for, or those that they are other spellings of."""
    from vitruvian.golden.machines import find

    chosen: list[Machine] = []
    for name in names:
        own = [row for row in rows if row.stem == name or row.stem.startswith(f"{name}_")]
        exact = [row for row in own if row.stem == name]
        chosen += exact or own or [find(name)]
    return chosen if names else rows


def _groups(rows: list["Machine"]) -> list[dict[str, object]]:
    """Return one record for the formats that share machine, instruction, result and rule."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        key = (row.machine, row.instruction or "–", row.output, summary(row.rule), row.evidence)
        groups.setdefault(key, []).append(row.formats)
    records: list[dict[str, object]] = []
    for (machine, instruction, output, rule, evidence), formats in groups.items():
        unique = list(dict.fromkeys(formats))
        names = ", ".join(unique)
        if len(unique) > 4:  # all pairs of a few formats
            names = "pairs of " + ", ".join(f for f in unique if "x" not in f)
        records.append(
            {
                "machine": machine,
                "instruction": instruction,
                "formats": names,
                "result": output,
                "rule": rule,
                "evidence": evidence,
            }
        )
    return records


def summary(rule: "Rule") -> str:
    """Return the rule in a few words."""
    from vitruvian.golden.fp import DotSpec, IntDotSpec
    from vitruvian.golden.machines import ChainSpec

    if isinstance(rule, IntDotSpec):
        return f"K {rule.k}, exact modulo 2^32"
    if isinstance(rule, ChainSpec):
        how = "rounded products in pairs" if rule.products == "rounded" else "chain of FMAs"
        if rule.accumulators > 1:
            how = f"{rule.accumulators} chains of FMAs"
        return f"K {rule.k or 'any'}, {how}, {rule.step.rounding}"
    if not isinstance(rule, DotSpec):
        return f"K {rule.k}, {rule.phases} phase{'s' * (rule.phases > 1)}, half up"
    if rule.k == 1 and rule.truncate == "floor":
        return f"K 1, FMA, {rule.rounding}"
    window = "exact sum" if rule.window is None else f"F {rule.window} {rule.truncate}"
    words = [f"K {rule.k}", window, rule.rounding]
    if rule.result_bits < rule.output.fraction_bits:
        words.append(f"{rule.result_bits} result bits")
    if rule.emax_floor is not None:
        words.append(f"floor {rule.emax_floor}")
    words += [f"C {rule.accumulate}"] if rule.accumulate != "tree" else []
    words += [f"{rule.scale} / {rule.block}"] if rule.scale else []
    words += [f"{len(rule.slices)} slices"] if rule.slices else []
    return ", ".join(words)


def _parameters(row: "Machine") -> dict[str, object]:
    """Return every parameter of a rule that is not at its default, by name."""
    found: dict[str, object] = {"kind": row.kind}
    for part in (row.rule, getattr(row.rule, "step", None)):
        if part is None:
            continue
        for each in fields(part):
            value = getattr(part, each.name)
            if each.name != "step" and value != each.default and each.name not in found:
                found[each.name] = value
    return found


def _word(value: object) -> str:
    return f"{value:#x}" if isinstance(value, int) and value > 1 << 12 else str(value)


def _plain(parameters: dict[str, object]) -> dict[str, object]:
    """Return values that JSON has; a format becomes its name."""
    plain = (str, int, float, bool, type(None), tuple)
    return {name: v if isinstance(v, plain) else str(v) for name, v in parameters.items()}
