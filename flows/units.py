"""Every unit the flows know by name, its options, and which configurations are reported.

A unit turns a configuration (option name -> value) into a component. Adding a unit is adding one
entry to `UNITS`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from amaranth.lib import wiring

from flows.errors import UserError, choose
from golden.fp.formats import FORMATS
from golden.fp.spec import PRESETS, DotSpec
from hdl.fp.core import PIPELINES
from hdl.fp.dot import DotProduct
from hdl.fp.intdot import IntDotProduct

Configuration = Mapping[str, Any]


@dataclass(frozen=True)
class Option:
    """One setting of a unit: how to read it, and what is allowed (for messages and help)."""

    read: Callable[[str], Any]
    help: str
    flag: bool = False

    def values(self, text: str | bool) -> list[Any]:
        """Read ``4,8`` or ``0-3`` or, for a flag, True."""
        if self.flag:
            return [True]
        found: list[Any] = []
        for word in str(text).split(","):
            ends = word.split("-")
            if len(ends) == 2 and all(end.isdecimal() for end in ends):
                low, high = (self.read(end) for end in ends)
                found += range(low, high + 1)
            else:
                found.append(self.read(word))
        return found


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A named generator.

    Parameters
    ----------
    summary : str
        One line for lists.
    options : dict of str to Option
        In the order in which they appear in names.
    default : callable
        Takes the given options, returns the complete configuration.
    build : callable
        Takes a complete configuration, returns the component.
    macs : callable
        Multiply-accumulates a cycle of a configuration, 0 where that means nothing.
    rows : callable
        The configurations that `area` and `verilog` treat when none is asked for.
    shared : tuple of Component classes
        Sub-components that are synthesised once and counted.
    """

    name: str
    summary: str
    options: dict[str, Option]
    default: Callable[[Configuration], dict[str, Any]]
    build: Callable[[Configuration], wiring.Component]
    macs: Callable[[Configuration], int] = lambda configuration: 0
    rows: Callable[[], Sequence[Configuration]] = lambda: ({},)
    shared: tuple[type, ...] = field(default=())


@dataclass(frozen=True)
class Variant:
    """A unit with every option decided."""

    unit: Unit
    configuration: Configuration

    @property
    def label(self) -> str:
        """Name that is unique within the unit, e.g. ``a100-fp16-fp32-k8-p3``."""
        words = []
        for name, value in self.configuration.items():
            if value is None or value is False:
                continue
            prefix = {"k": "k", "pipeline": "p"}.get(name, "")
            words.append(name if value is True else f"{prefix}{value}")
        return "-".join(words).replace("_", "-") or "default"

    @property
    def module(self) -> str:
        """Name of the Verilog module and file: unit and label as one identifier."""
        return f"{self.unit.name}_{self.label}".replace("-", "_")

    @property
    def arguments(self) -> str:
        """The options as they are written on the command line."""
        words = [self.unit.name]
        for name, value in self.configuration.items():
            if value is None or value is False:
                continue
            words.append(f"--{name.replace('_', '-')}" + ("" if value is True else f" {value}"))
        return " ".join(words)

    @property
    def macs(self) -> int:
        return self.unit.macs(self.configuration)

    def build(self) -> wiring.Component:
        """Return the component; a configuration that cannot be built is a `UserError`."""
        try:
            return self.unit.build(self.configuration)
        except (TypeError, ValueError) as error:
            raise UserError(f"{self.unit.name}: {error}") from error


def variants(unit: str, given: Mapping[str, Sequence[Any]]) -> list[Variant]:
    """Return `unit` in every combination of the given option values, the rest by default.

    Raises
    ------
    UserError
        Unknown unit or option, or a combination that the unit does not have.
    """
    chosen = UNITS[choose("unit", unit, UNITS)]
    for name in given:
        options = [f"--{o.replace('_', '-')}" for o in chosen.options]
        choose(f"option of {unit}", f"--{name.replace('_', '-')}", options)
    sets = [dict(zip(given, values, strict=True)) for values in product(*given.values())]
    try:
        found = [Variant(chosen, chosen.default(options)) for options in sets]
    except (TypeError, ValueError) as error:
        raise UserError(f"{unit}: {error}") from error
    return found


def reported(unit: str) -> list[Variant]:
    """Return the variants of `unit` that are reported and kept as baselines."""
    chosen = UNITS[choose("unit", unit, UNITS)]
    return [Variant(chosen, chosen.default(row)) for row in chosen.rows()]


def _named(what: str, allowed) -> Option:
    names = list(allowed)
    return Option(lambda text: choose(what, text, names), " | ".join(names))


def _number(what: str, least: int, most: int) -> Option:
    def read(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise UserError(f"{what} must be a number from {least} to {most}, not {text!r}")
        return int(text)

    return Option(read, f"{least} to {most}")


def _flag(help: str) -> Option:
    return Option(bool, help, flag=True)


_PIPELINE = _number("pipeline", min(PIPELINES), max(PIPELINES))


def _dot_spec(c: Configuration) -> DotSpec:
    return PRESETS[c["preset"]].spec(c["input"], c["output"], k=c["k"], input_b=c["input_b"])


def _dot_default(given: Configuration) -> dict[str, Any]:
    c = {"preset": "a100", "input": "fp16", "input_b": None, "output": "fp32", "k": None}
    c |= {"pipeline": 3, **given}
    spec = _dot_spec(c)
    c["k"] = spec.k
    if spec.input_b == spec.input:
        c["input_b"] = None
    return c


def _dot_build(c: Configuration) -> wiring.Component:
    return DotProduct(spec=_dot_spec(c), pipeline=c["pipeline"])


_REPORTED_INPUTS = {
    "a2": ("fp16",),  # as a100
    "ada": ("fp16", "fp8e4m3", "fp8e5m2"),  # as a100, and fp8
    "b200": ("fp16",),  # as h100
    "ieee": ("fp16", "bf16", "fp8e4m3", "fp32"),
}


def _dot_rows() -> list[Configuration]:
    rows: list[Configuration] = []
    for preset in PRESETS.values():
        if preset.name == "exact":
            continue
        inputs = _REPORTED_INPUTS.get(preset.name, preset.inputs)
        rows += [{"preset": preset.name, "input": name} for name in inputs]
    rows += [
        {"preset": preset, "k": k, "pipeline": 3} for preset in ("a100", "ieee") for k in (4, 8, 16)
    ]
    return list({str(_dot_default(row)): row for row in rows}.values())


def _int_default(given: Configuration) -> dict[str, Any]:
    return {"k": 16, "unsigned_a": False, "unsigned_b": False, "saturate": False, "pipeline": 1} | {
        **given
    }


def _int_build(c: Configuration) -> wiring.Component:
    return IntDotProduct(
        k=c["k"],
        signed_a=not c["unsigned_a"],
        signed_b=not c["unsigned_b"],
        saturate=c["saturate"],
        pipeline=c["pipeline"],
    )


UNITS: dict[str, Unit] = {
    unit.name: unit
    for unit in (
        Unit(
            name="dot",
            summary="fused dot product D = C + sum A*B, one rounding",
            options={
                "preset": _named("preset", PRESETS),
                "input": _named("input", FORMATS),
                "input_b": _named("input-b", FORMATS),
                "output": _named("output", FORMATS),
                "k": _number("k", 1, 64),
                "pipeline": _PIPELINE,
            },
            default=_dot_default,
            build=_dot_build,
            macs=lambda c: c["k"],
            rows=_dot_rows,
        ),
        Unit(
            name="intdot",
            summary="INT8 dot product with 32-bit accumulation",
            options={
                "k": _number("k", 1, 64),
                "unsigned_a": _flag("A is UINT8"),
                "unsigned_b": _flag("B is UINT8"),
                "saturate": _flag("saturate instead of wrap"),
                "pipeline": _PIPELINE,
            },
            default=_int_default,
            build=_int_build,
            macs=lambda c: c["k"],
            rows=lambda: ({"pipeline": 0}, {"pipeline": 1}, {"k": 32}, {"saturate": True}),
        ),
    )
}
