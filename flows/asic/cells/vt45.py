"""The built-in 45 nm cell library, generated from a table of cells and a delay model.

The tables here state the structure of each cell. ``flows.asic.cells.stages`` derives areas,
capacitances and delays from it, and ``flows.asic.cells.writer`` writes them as liberty. Names and
drive strengths are those of the open 45 nm libraries, so netlists look the same and the libraries
can be exchanged. Areas are those published for that process. ``vitruvian cells --compare`` measures
the agreement on our units.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from vitruvian.flows.asic.cells.stages import Stage, network

NAME = "vt45"
VERSION = "1"
HALF = 0.56  # strength of the narrow first stage in buffered X1 cells

# Published column counts that differ from the finger rule in ``stages``, because of transmission
# gates in the flip-flops and breaks in the diffusion.
COLUMNS = {
    "FA_X1": 16,
    "HA_X1": 10,
    "MUX2_X2": 9,
    "XNOR2_X2": 10,
    "AOI222_X1": 8,
    "AOI222_X2": 14,
    "OAI222_X1": 8,
    "OAI222_X2": 14,
    "AOI221_X4": 13,
    "AOI222_X4": 14,
    "OAI221_X4": 13,
    "OAI222_X4": 14,
    "NAND4_X4": 18,
    "NOR3_X4": 14,
    "NOR4_X4": 18,
}

_INVERTING = {
    "INV": "A",
    "NAND2": "A1 & A2",
    "NAND3": "A1 & A2 & A3",
    "NAND4": "A1 & A2 & A3 & A4",
    "NOR2": "A1 | A2",
    "NOR3": "A1 | A2 | A3",
    "NOR4": "A1 | A2 | A3 | A4",
    "AOI21": "(B1 & B2) | A",
    "AOI22": "(A1 & A2) | (B1 & B2)",
    "AOI211": "(C1 & C2) | B | A",
    "AOI221": "(C1 & C2) | (B1 & B2) | A",
    "AOI222": "(A1 & A2) | (B1 & B2) | (C1 & C2)",
    "OAI21": "(B1 | B2) & A",
    "OAI22": "(A1 | A2) & (B1 | B2)",
    "OAI211": "(C1 | C2) & B & A",
    "OAI221": "(C1 | C2) & (B1 | B2) & A",
    "OAI33": "(A1 | A2 | A3) & (B1 | B2 | B3)",
    "OAI222": "(A1 | A2) & (B1 | B2) & (C1 | C2)",
}
_BUFFERED = {
    "BUF": "A",
    "AND2": "A1 & A2",
    "AND3": "A1 & A2 & A3",
    "AND4": "A1 & A2 & A3 & A4",
    "OR2": "A1 | A2",
    "OR3": "A1 | A2 | A3",
    "OR4": "A1 | A2 | A3 | A4",
}
_STRENGTHS = {"INV": (1, 2, 4, 8, 16, 32), "BUF": (1, 2, 4, 8, 16, 32), "OAI33": (1,)}
_BUFFERED_AT_X4 = ("AOI211", "AOI221", "AOI222", "OAI221", "OAI222")


@dataclass(frozen=True)
class FlipFlop:
    """A rising-edge flip-flop: its columns of area and its asynchronous control, if it has one."""

    columns: int
    control: str = ""
    strength: float = 1.0


FLIP_FLOPS = {
    "DFF_X1": FlipFlop(17),
    "DFF_X2": FlipFlop(19, strength=2.0),
    "DFFR_X1": FlipFlop(20, "clear"),
    "DFFS_X1": FlipFlop(20, "preset"),
}


def stage(output: str, condition: str, strength: float = 1.0) -> Stage:
    """Return an inverting stage from the text of its pull-down condition."""
    return Stage(output, network(condition), strength)


def logic_cells() -> Iterator[tuple[str, float, tuple[tuple[Stage, ...], ...]]]:
    """Yield each cell's name, its drive strength, and one chain of stages per output."""
    for name, condition in _INVERTING.items():
        for strength in _STRENGTHS.get(name, (1, 2, 4)):
            chain = (stage("ZN", condition, strength),)
            # The large complex gates are small gates with two inverting buffers behind them.
            if strength == 4 and name in _BUFFERED_AT_X4:
                chain = (stage("n", condition), stage("m", "n", 2), stage("ZN", "m", 4))
            yield f"{name}_X{strength}", strength, (chain,)
    for name, condition in _BUFFERED.items():
        output = "Z" if name == "BUF" else "ZN"
        for strength in _STRENGTHS.get(name, (1, 2, 4)):
            first = HALF if strength == 1 else strength / 2
            chain = (stage("n", condition, first), stage(output, "n", strength))
            yield f"{name}_X{strength}", strength, (chain,)
    for strength in (1, 2):
        half = HALF if strength == 1 else strength / 2
        nor = stage("n", "A | B", half)
        nand = stage("n", "A & B", half)
        yield f"XOR2_X{strength}", strength, ((nor, stage("Z", "(A & B) | n", strength)),)
        yield f"XNOR2_X{strength}", strength, ((nand, stage("ZN", "(A | B) & n", strength)),)
        select = (stage("sn", "S", half), stage("n", "(A & sn) | (B & S)", half))
        yield f"MUX2_X{strength}", strength, ((*select, stage("Z", "n", strength)),)
    half_carry = (stage("cn", "A & B", HALF), stage("CO", "cn"))
    half_sum = (stage("n", "A | B", HALF), stage("S", "(A & B) | n"))
    yield "HA_X1", 1, (half_carry, half_sum)
    majority = stage("cn", "(A & B) | (CI & (A | B))", HALF)
    parity = stage("sn", "((A | B | CI) & cn) | (A & B & CI)", HALF)
    yield "FA_X1", 1, ((majority, stage("CO", "cn")), (majority, parity, stage("S", "sn")))
