"""The buffer with CSC and CSR space against golden, and mutants that the comparison notices."""

import numpy as np
import pytest
from amaranth.hdl import Mux, Signal
from amaranth.lib.wiring import In

from vitruvian.golden.sparse import names
from vitruvian.hdl.sparse.buffer import DualBuffer
from vitruvian.hdl.sparse.config import Plus, Times
from vitruvian.hdl.sparse.oei_config import OEIConfig
from vitruvian.sim.bench.sparse.frame import BufferFrame
from vitruvian.sim.bench.sparse.oei import compare_buffer
from vitruvian.sim.bench.sparse.passes import directed_passes, random_passes
from vitruvian.sim.rtl import StreamError, compile

SMALL = OEIConfig(lanes=4, rows=32, columns=4, capacity=64, beats=2, format="fp16")


class Mutants(DualBuffer):
    """A buffer with one of several mistakes, which an input chooses.

    0: none. 1: a row leaves with elements of the sub-tensor that arrives in the same step. 2: a
    finished row gives no space back. 3: it gives its space back twice. 4: a row's elements leave
    in the order of the banks. 5: a row counts as stuck although space is being freed.
    """

    mutant: Signal

    def _derived_ports(self):
        return {"mutant": In(4)}

    def _arrived(self, known, arriving):
        return Mux(self.mutant == 1, known.fill, super()._arrived(known, arriving))

    def _build_places(self, m):
        frees = self._frees
        self._frees = Mux(self.mutant == 5, 0, frees)
        super()._build_places(m)
        self._frees = frees

    def _freed(self, count):
        wrong = Mux(self.mutant == 3, count << 1, count)
        return Mux(self.mutant == 2, 0, wrong)

    def _turn(self, start):
        return Mux(self.mutant == 4, 0, super()._turn(start))


@pytest.fixture(scope="module")
def model():
    return compile(BufferFrame(config=SMALL, buffer=Mutants))


def checked(model, mutant, count=12, **options):
    passes = random_passes(np.random.default_rng(7), SMALL, count)
    return compare_buffer(model, SMALL, passes, seed=7, held={"mutant": mutant}, **options)


@pytest.mark.parametrize("stall_rate", [0, 0.5])
def test_rows_and_columns_equal_golden(model, stall_rate):
    result = checked(model, 0, stall_rate=stall_rate)
    assert not result.mismatches and result.vectors > 300, result.examples


@pytest.mark.parametrize("mutant", [1, 2, 3, 4])
def test_mutants_are_noticed(model, mutant):
    try:
        assert checked(model, mutant, quiet_limit=500).mismatches
    except StreamError as error:
        assert "hung" in str(error) or "surplus" in str(error)


def test_directed_passes_find_a_row_that_counts_as_stuck_while_space_is_freed(model):
    """Regression: no random matrix frees so many rows at the end of a step."""
    passes = directed_passes(np.random.default_rng(7), SMALL)
    result = compare_buffer(model, SMALL, passes, seed=7, held={"mutant": 0})
    assert not result.mismatches, result.examples
    with pytest.raises(StreamError, match="hung"):
        compare_buffer(model, SMALL, passes, seed=7, held={"mutant": 5}, quiet_limit=500)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lanes": 3}, "lanes must be one of 1, 2, 4, 8, 16, 32, 64, not 3"),
        ({"rows": 8}, "rows must be between 16 and 1024, not 8"),
        ({"columns": 4}, "columns must be between 8 and 64, not 4"),
        ({"capacity": 24}, "capacity must be one of 16, 32, 64, 128, 256, 512, 1024, 2048, "
         "4096, 8192, 16384, not 24"),
        ({"beats": 0}, "beats must be between 1 and 1024, not 0"),
        ({"format": "int8"}, "format must be one of fp16, bf16, fp32, not 'int8'"),
    ],
)  # fmt: skip
def test_a_wrong_size_is_refused(changes, message):
    with pytest.raises(ValueError) as error:
        OEIConfig(**changes)
    assert str(error.value) == message


@pytest.mark.parametrize(("codes", "ordered"), [(Plus, names.PLUS), (Times, names.TIMES)])
def test_hardware_has_every_operator_of_golden_under_its_code(codes, ordered):
    assert [code.name.lower() for code in codes] == list(ordered)
    assert [code.value for code in codes] == list(range(len(ordered)))


def test_a_wrong_config_is_refused():
    with pytest.raises(TypeError, match="config must be an OEIConfig, not 8"):
        DualBuffer(config=8)  # type: ignore[arg-type]
