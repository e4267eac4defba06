"""The rules of machines in a few words, for tables."""

from collections.abc import Iterable

from vitruvian.golden.fp.spec import DotSpec, IntDotSpec
from vitruvian.golden.machines.int_phases import IntPhaseSpec
from vitruvian.golden.machines.spec import ChainSpec, RdnaSpec
from vitruvian.golden.machines.table import Machine, Rule, missing

_MANY = 4  # formats that a row of the table lists one by one


def grouped(rows: Iterable[Machine]) -> list[dict[str, object]]:
    """Return one record for the formats that share machine, instruction, result and rule.

    Returns
    -------
    list of dict
        Records with the keys machine, instruction, formats, result, rule and evidence.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        key = (row.machine, row.instruction or "–", row.output, summary(row.rule), row.evidence)
        groups.setdefault(key, []).append(row.formats)
    records: list[dict[str, object]] = []
    for (machine, instruction, output, rule, evidence), formats in groups.items():
        unique = list(dict.fromkeys(formats))
        names = ", ".join(unique)
        if len(unique) > _MANY:  # all pairs of a few formats
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


def summary(rule: Rule) -> str:
    """Return the rule in a few words.

    Examples
    --------
    >>> from vitruvian import machines
    >>> summary(machines.find("a100_mma_fp16_fp32").rule)
    'K 8, F 24 magnitude, RZ, floor -132'
    """
    if isinstance(rule, IntDotSpec):
        return (
            f"K {rule.k}, exact, saturating" if rule.saturate else f"K {rule.k}, exact modulo 2^32"
        )
    if isinstance(rule, ChainSpec):
        how = "rounded products in pairs" if rule.products == "rounded" else "chain of FMAs"
        if rule.accumulators > 1:
            how = f"{rule.accumulators} chains of FMAs"
        if rule.products == "paired":
            how = f"sums of two rounded products, {rule.accumulators} accumulators"
        how += f", {rule.complex} part" if rule.complex else ""
        return f"K {rule.k or 'any'}, {how}, {rule.step.result.rounding}"
    if isinstance(rule, IntPhaseSpec):
        return f"K {rule.k}, {_phases(rule.phases)}, exact, saturating"
    if isinstance(rule, RdnaSpec):
        how = "sums of pairs floored" if rule.input.width > 8 else "sum floored"
        return f"K {rule.k}, {how if rule.rdna4 else 'inverted terms'}, RNE"
    if not isinstance(rule, DotSpec):
        shared = "" if rule.shared_bits is None else ", shared exponents / 16"
        return f"K {rule.k}, {_phases(rule.phases)}, half up{shared}"
    if rule.k == 1 and rule.sum.truncate == "floor":
        return f"K 1, FMA, {rule.result.rounding}"
    window = "exact sum" if rule.sum.window is None else f"F {rule.sum.window} {rule.sum.truncate}"
    words = [f"K {rule.k}", window, rule.result.rounding]
    if rule.result.bits < rule.output.fraction_bits:
        words.append(f"{rule.result.bits} result bits")
    if rule.sum.floor is not None:
        words.append(f"floor {rule.sum.floor}")
    words += [f"C {rule.addend.how}"] if rule.addend.how != "tree" else []
    words += [f"{rule.scales.format} / {rule.scales.block}"] if rule.scales else []
    words += [f"{len(rule.products.slices)} slices"] if rule.products.slices else []
    return ", ".join(words)


def _phases(many: int) -> str:
    return "1 phase" if many == 1 else f"{many} phases"


def unknown(machines: Iterable[str]) -> list[dict[str, object]]:
    """Return a record like those of ``grouped`` for each instruction without a known rule."""
    wanted = set(machines)
    return [
        {
            "machine": entry.machine,
            "instruction": entry.instruction,
            "formats": entry.formats,
            "result": entry.output,
            "rule": "no rule",
            "evidence": entry.reason,
        }
        for entry in missing().values()
        if entry.machine in wanted
    ]
