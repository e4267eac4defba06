"""Rows of power as a table, and what the figures of a library are."""

from collections.abc import Sequence

from vitruvian.flows.asic.power.cells import PowerLibrary
from vitruvian.flows.asic.power.energy import PARTS
from vitruvian.flows.asic.power.measure import PowerRow
from vitruvian.flows.asic.power.stimulus import STIMULI

#: Header of the table. The parts are those of the energy with delays.
HEADER = [
    *(
        "unit",
        "configuration",
        "target ps",
        "stimulus",
        "ns",
        "zero delay",
        "timed",
        "glitches",
        "mW",
    ),
    *PARTS,
]


def table(rows: Sequence[PowerRow]) -> tuple[list[str], list[list[str]]]:
    """Return header and lines: energy of a multiply-accumulate in pJ, and its parts.

    If a row is of a unit with several precisions, the last column is the share of the idle ones.
    """
    lines = []
    several = any(row.idle_share is not None for row in rows)
    for row in rows:
        parts = [row.timed.parts[part] / row.macs / 1000 for part in PARTS]
        lines.append(
            [
                row.variant.unit.name,
                row.variant.label,
                str(row.target_ps),
                row.stimulus,
                f"{row.period_ps / 1000:.2f}",
                f"{row.zero_delay_pj_per_mac:.2f}",
                f"{row.pj_per_mac:.2f}",
                f"{100 * row.glitch_share:.0f} %",
                f"{row.milliwatts:.1f}",
                *(f"{part:.2f}" for part in parts),
                *([_idle(row)] if several else []),
            ]
        )
    return [*HEADER, *(["idle"] if several else [])], lines


def _idle(row: PowerRow) -> str:
    return "–" if row.idle_share is None else f"{100 * row.idle_share:.1f} %"


def note(rows: Sequence[PowerRow], library: PowerLibrary, *, seed: int) -> str:
    """Return what the figures are, and what the library lacks."""
    texts = [
        f"pJ per multiply-accumulate at {library.volts:g} V without wires beyond the wire-load "
        f"model and without a clock tree; zero delay: settled values only; parts: timed; "
        f"{rows[0].cycles} cycles of each stimulus (seed {seed}), whose outputs are golden's"
    ]
    texts += [f"{name}: {STIMULI[name]}" for name in dict.fromkeys(row.stimulus for row in rows)]
    if any(row.idle_share is not None for row in rows):
        texts.append(
            "idle: the share of the energy in gates, and in their input pins, that cannot change "
            "a result while the precision in use stays the same"
        )
    if any(row.busy_share < 1 for row in rows):
        texts.append(
            f"{100 * rows[0].busy_share:.1f} % of the cycles have new operands, and only their "
            "multiply-accumulates count"
        )
    lacking = [
        word
        for word, present in (
            ("internal_power", library.has_internal),
            ("leakage", library.has_leakage),
        )
        if not present
    ]
    if lacking:
        texts.append(
            f"the library has no {' and no '.join(lacking)}: the figures leave out that energy"
        )
    return "; ".join(texts)
