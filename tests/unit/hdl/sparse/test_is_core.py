"""The input-stationary core against golden, and mutants that the comparison must notice."""

import numpy as np
import pytest
from amaranth.hdl import Mux, Signal
from amaranth.lib.wiring import In

from vitruvian.golden.sparse.names import KINDS
from vitruvian.hdl.sparse import ISConfig, ISCore, Kind
from vitruvian.sim.bench.sparse.batch import compare_rows
from vitruvian.sim.bench.sparse.traffic import rows
from vitruvian.sim.rtl import compile

#: A small core, which builds fast.
SMALL = ISConfig(lanes=2, depth=4, format="fp16")


class Mutants(ISCore):
    """A core with one of several mistakes, which an input chooses, so that one build has them all.

    0: none. 1: of several products for a bank, the highest lane goes first. 2: a beat leaves after
    one cycle, with the products that are left. 3: a beat that writes multiplies.
    """

    mutant: Signal

    def _derived_ports(self):
        return {"mutant": In(2)}

    def _granted(self, wants):
        return Mux(self.mutant == 1, wants & ~(wants >> 1), super()._granted(wants))

    def _left(self, pending, served):
        return super()._left(pending, served) & (self.mutant != 2).replicate(len(pending))

    def _product(self, kind, a, product):
        return Mux(self.mutant == 3, product, super()._product(kind, a, product))


@pytest.fixture(scope="module")
def model():
    return compile(Mutants(config=SMALL))


def checked(model, mutant, count=400, **options):
    beats = rows(np.random.default_rng(7), count, 2, 8, "fp16")
    return compare_rows(model, SMALL, beats, seed=7, held={"mutant": mutant}, **options)


@pytest.mark.parametrize("stall_rate", [0, 0.5])
def test_groups_equal_golden(model, stall_rate):
    result = checked(model, 0, stall_rate=stall_rate)
    assert not result.mismatches and result.vectors > 60, result.examples


@pytest.mark.parametrize("mutant", [1, 2, 3])
def test_mutants_are_noticed(model, mutant):
    assert checked(model, mutant).mismatches


def test_a_beat_takes_as_many_cycles_as_products_for_one_bank(model):
    columns = np.array([[0, 1], [0, 2], [3, 3], [1, 0], [5, 4], [0, 0]])
    n = len(columns)
    result = model.stream(
        inputs={
            "i": {
                "lanes": {
                    "a": np.zeros((n, 2), np.uint16),
                    "column": columns,
                    "present": np.ones((n, 2), np.uint8),
                },
                "x": np.zeros(n, np.uint16),
                "kind": np.array([1] * 5 + [2]),
                "plus": np.zeros(n, np.uint8),
                "times": np.zeros(n, np.uint8),
            }
        },
        outputs={"o": 1},
        held={"mutant": 0},
    )
    start = result.input_cycles["i"][0]
    assert (result.input_cycles["i"] - start).tolist() == [0, 1, 3, 5, 6, 7]
    latency = ISCore(config=SMALL).latency
    assert result.output_cycles["o"][0] == result.input_cycles["i"][-1] + latency


def test_the_kinds_have_the_order_of_golden():
    assert [x.name.lower() for x in Kind] == list(KINDS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lanes": 3}, "lanes must be one of 1, 2, 4, 8, 16, 32, 64, not 3"),
        ({"depth": 1}, "depth must be between 2 and 4096, not 1"),
        ({"format": "int8"}, "format must be one of fp16, bf16, fp32, not 'int8'"),
    ],
)
def test_a_wrong_size_is_refused(changes, message):
    with pytest.raises(ValueError) as error:
        ISConfig(**changes)
    assert str(error.value) == message


def test_a_wrong_config_is_refused():
    with pytest.raises(TypeError, match="config must be an ISConfig, not 8"):
        ISCore(config=8)  # type: ignore[arg-type]
