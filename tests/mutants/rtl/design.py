"""A core with mutants, compiled once for all of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In

from .schemata import NUMBER_BITS, Mutant, Schemata

#: Modules of ``hdl.core`` that are no part of a core whose S is a fetch unit: parameters, tables,
#: what connects a core to a bus, a serial line or a board, and S as a RISC-V.
OUTSIDE = (
    *("__init__", "config", "facts", "lanes", "support", "serial_map"),
    *("access", "axi", "axi_master", "board", "registers", "serial"),
    *("riscv", "riscv_board", "riscv_unit"),
)
#: Global memory and host, which are no part of a core.
_SKIPPED = ("CoreBoard",)
MEMORY_BYTES = 1 << 19

SCHEMATA = Schemata()


def files() -> list[str]:
    """Return the names of the modules that can have mutants."""
    folder = Path(__file__).parents[3] / "hdl" / "core"
    return sorted(path.stem for path in folder.glob("*.py") if path.stem not in OUTSIDE)


def install() -> None:
    """Rewrite the modules when they are imported, which must not have happened."""
    SCHEMATA.install(files(), _SKIPPED)
    from vitruvian.hdl.core.buffer import BlockMemory

    elaborate = BlockMemory.elaborate

    def quiet(self: Any, platform: object) -> Module:
        # Only the global memory has a port of the memory for each reader.
        if not self.own:
            return elaborate(self, platform)
        with SCHEMATA.pause():
            return elaborate(self, platform)

    BlockMemory.elaborate = quiet


def campaign_core(name: str) -> Any:
    """Return the parameters of a small core that has every part.

    ``lines`` has a matrix unit of 4 × 4 × 8 and 32 lanes, so that MTE1 moves lines of two blocks, V
    takes two blocks a beat, and UB has four banks; ``blocks`` has 4 × 4 × 4, 16 lanes and one bank.
    ``least`` is like ``blocks``, but with few groups of the vector unit.
    """
    from vitruvian.hdl.core import CoreConfig
    from vitruvian.hdl.cube.config import MatrixUnitConfig
    from vitruvian.hdl.vector.config import VectorConfig
    from vitruvian.hdl.vector.extension import ExtensionConfig

    vectors = {
        "lines": VectorConfig(lanes=32),
        "blocks": VectorConfig(lanes=16),
        "least": VectorConfig(lanes=16, groups=("compare",)),
    }
    wide, least = name == "lines", name == "least"
    kib = 1024
    return CoreConfig(
        tile=MatrixUnitConfig(m=4, n=4, k=8 if wide else 4, precisions=("fp16",)),
        vector=vectors[name],
        extension=ExtensionConfig(groups=()) if least else ExtensionConfig(),
        l1=64 * kib,
        l0a=16 * kib,
        l0b=16 * kib,
        l0c=32 * kib,
        ub=64 * kib,
        l1_blocks=2 if wide else 1,
        ub_banks=4 if wide else 1,
    )


class MutantBoard(wiring.Component):
    """A ``CoreBoard`` with a port that selects a mutant.

    Parameters
    ----------
    config : CoreConfig
    mutants : sequence of (Mutant, int)
        As ``Schemata.begin`` takes them.

    Members
    -------
    mutant : In(12)
        Number of the active mutant, from 1; with 0, none is.
    others
        Those of the board.
    """

    if TYPE_CHECKING:
        mutant: Signal
        i: stream.Interface
        o: stream.Interface

    def __init__(self, *, config: Any, mutants: Sequence[tuple[Mutant, int]]):
        from vitruvian.hdl.core import CoreBoard

        self.board = CoreBoard(config=config, memory_bytes=MEMORY_BYTES)
        self.mutants = mutants
        self.shared = CoreBoard.shared
        super().__init__(dict(self.board.signature.members) | {"mutant": In(NUMBER_BITS)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.board = self.board
        SCHEMATA.begin(self.mutants, self.mutant)
        for name, member in self.board.signature.members.items():
            mine, own = getattr(self, name), getattr(self.board, name)
            if not member.is_port:
                wiring.connect(m, own, wiring.flipped(mine))
                continue
            ends = (own, mine) if member.flow == In else (mine, own)
            pairs = zip(*ends, strict=True) if member.dimensions else [ends]
            m.d.comb += [Value.cast(to).eq(Value.cast(source)) for to, source in pairs]
        return m


def survey(config: Any) -> list[Mutant]:
    """Return all mutants of a core."""
    from amaranth.hdl import Fragment

    from vitruvian.hdl.elaborate import elaborating

    with elaborating(), SCHEMATA.statements():
        Fragment.get(MutantBoard(config=config, mutants=()), None).prepare()
    return SCHEMATA.mutants()


def compiled(config: Any, mutants: Sequence[tuple[Mutant, int]]) -> Any:
    """Return the compiled model of a core with some mutants."""
    from vitruvian.sim.rtl import compile

    with SCHEMATA.statements():
        return compile(MutantBoard(config=config, mutants=mutants))
