"""Write a rule as a file of the form that the table of machines has."""

from dataclasses import fields
from typing import Any, cast

from vitruvian.golden.fp.spec import DotSpec, IntDotSpec, dot_spec
from vitruvian.golden.machines.int_phases import IntPhaseSpec
from vitruvian.golden.machines.probe.cases import Cases
from vitruvian.golden.machines.spec import ChainSpec, RdnaSpec
from vitruvian.golden.machines.table import Rule

#: Fields that stand in the row of a file, or that the row's formats say
_OF_ROW = ("input", "input_b", "output", "k", "scale", "block")


def machine_file(rule: Rule, data: Cases, *, machine: str, instruction: str) -> str:
    """Return a TOML file with one machine, one rule and one row.

    ``golden.machines.table.read_rows`` reads it.

    Parameters
    ----------
    data : Cases
        The operands, which give the formats.
    machine, instruction : str
        Names of the machine and of the instruction.
    """
    kind, parameters = _parameters(rule)
    formats = str(data.input)
    if data.input_b != data.input:
        formats += f"x{data.input_b}"
    row: dict[str, Any] = {
        "machines": [machine],
        "instruction": instruction,
        "formats": [formats],
        "outputs": [str(data.output)],
    }
    variant = getattr(rule, "phases", None)
    if variant is not None:
        row["variants"] = {"lofi hifi2 hifi3 hifi4".split()[variant - 1]: variant}
    elif getattr(rule, "k", None) is not None:
        row["k"] = rule.k
    if isinstance(rule, DotSpec) and rule.scales is not None:
        row |= {"scale": str(rule.scales.format), "block": rule.scales.block}
    row |= {"rule": "inferred", "evidence": "S; inferred from outputs"}
    lines = [
        f'maker = "unknown"\n\n[machines]\n{machine} = "{machine}"\n\n[rules.inferred]',
        *([f'kind = "{kind}"'] if kind != "dot" else []),
        *(f"{name} = {_toml(value)}" for name, value in parameters.items()),
        "\n[[row]]",
        *(f"{name} = {_toml(value)}" for name, value in row.items()),
    ]
    return "\n".join(lines) + "\n"


def _parameters(rule: Rule) -> tuple[str, dict[str, Any]]:
    """Return the kind of a rule and its parameters that are not at their defaults."""
    if isinstance(rule, IntDotSpec):
        return "integer", {"saturate": True} if rule.saturate else {}
    if isinstance(rule, DotSpec):
        return "dot", _dot_changes(rule, _OF_ROW)
    if isinstance(rule, ChainSpec):
        step = _dot_changes(rule.step, (*_OF_ROW, "window"))
        own = {
            field.name: getattr(rule, field.name)
            for field in fields(rule)
            if field.name not in ("step", "k", "products")
            and getattr(rule, field.name) != field.default
        }
        kinds = {"rounded": "tree", "paired": "pairs"}
        return kinds.get(rule.products, "chain"), own | step
    if isinstance(rule, IntPhaseSpec):
        return "integer phases", {}
    if isinstance(rule, RdnaSpec):
        return "rdna", {"rdna4": rule.rdna4}
    shared = {} if rule.shared_bits is None else {"input": "bf16", "shared_bits": rule.shared_bits}
    return "phases", {"blackhole": rule.blackhole, **shared}


def _dot_changes(rule: DotSpec, without: tuple[str, ...]) -> dict[str, Any]:
    """Return the parameters of a rule that are not at their defaults."""
    plain = dot_spec(input=rule.input, output=rule.output, k=rule.k, window=None).parameters()
    return {
        name: value
        for name, value in rule.parameters().items()
        if name not in without and value != plain[name]
    }


def _toml(value: Any) -> str:
    """Return a value as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:#X}".replace("X", "x") if value > 1 << 12 else str(value)
    if isinstance(value, dict):
        pairs = cast(dict[str, Any], value)
        return "{ " + ", ".join(f"{k} = {_toml(v)}" for k, v in pairs.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(v) for v in cast(list[Any], value)) + "]"
    return f'"{value}"'
