"""The units that realise the rows of the table of machines."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from amaranth.lib import wiring

from vitruvian.common.validate import one_of
from vitruvian.golden.machines.table import find, machines
from vitruvian.hdl.catalogue.options import DEEP_PIPELINE, MULTIPLIER
from vitruvian.hdl.catalogue.unit import Configuration, Option, Unit
from vitruvian.hdl.fp.chain import ChainDot
from vitruvian.hdl.machines import NoUnit, Realisation, realise


@cache
def rows_with_units() -> dict[str, Realisation]:
    """Return the unit of each row that has one; of rows with the same unit, only the first."""
    found: dict[str, Realisation] = {}
    seen: set[str] = set()
    for stem, row in machines().items():
        try:
            unit = realise(row.rule)
        except NoUnit:
            continue
        if repr(unit) not in seen:
            seen.add(repr(unit))
            found[stem] = unit
    return found


@dataclass(frozen=True)
class _MachineRows(Option):
    """A row of the table, or several: ``all``, or all of a machine."""

    def values(self, text: str | bool) -> list[Any]:
        """Return the rows of a list; ``all`` and a machine stand for their rows with a unit."""
        rows: list[str] = []
        for word in str(text).split(","):
            own = [stem for stem in rows_with_units() if machines()[stem].machine == word]
            rows += rows_with_units() if word == "all" else own or [self.read(word)]
        return list(dict.fromkeys(rows))


def _row(text: str) -> str:
    stem = find(text).stem
    try:
        realise(machines()[stem].rule)
    except NoUnit as error:
        one_of(f"row, as {stem} has no unit ({error}),", text, _names(rows_with_units()))
    return stem


def _names(stems: Iterable[str]) -> list[str]:
    """Return the machines of rows, each once."""
    return sorted({machines()[stem].machine for stem in stems})


def _component(c: Configuration) -> tuple[type[wiring.Component], dict[str, Any]]:
    multiplier = c["multiplier"] or "booth"
    unit = realise(find(c["row"]).rule, pipeline=c["pipeline"], multiplier=multiplier)
    return unit.component, unit.parameters  # pyright: ignore[reportReturnType]


def _macs(c: Configuration) -> int:
    return realise(find(c["row"]).rule).k


def _default(given: Configuration) -> dict[str, Any]:
    return {"row": "cdna3_mfma_fp16_fp32", "pipeline": None, "multiplier": None, **given}


#: A row for each kind of rule that no other unit of the catalogue has.
_KINDS = (
    "cdna3_mfma_fp16_fp32",
    "cdna3_mfma_fp8_fp32",
    "avx512_vdpbf16ps",
    "cdna2_mfma_bf16_fp32",
    "wh_mvmul_bf16_fp32_hifi4",
)

UNITS = (
    Unit(
        name="machine",
        summary="the unit that realises a row of the table of machines",
        package="hdl.fp",
        options={
            "row": _MachineRows(
                _row,
                "a row of `vitruvian machines`, a machine, or all",
                samples=lambda: list(rows_with_units()),
            ),
            "pipeline": DEEP_PIPELINE,
            "multiplier": MULTIPLIER,
        },
        default=_default,
        component=_component,
        macs=_macs,
        rows=lambda: (),
        more=lambda: [{"row": row} for row in _KINDS],
        checked=tuple({"row": row} for row in _KINDS),
        documented={
            "the dot product of CDNA 3": {},
            "two fused multiply-adds, VDPBF16PS": {"row": "avx512_vdpbf16ps"},
            "a phase of MVMUL": {"row": "wh_mvmul_bf16_fp32_hifi4"},
        },
        shared=ChainDot.shared,
    ),
)
