"""The output-stationary core against golden, and mutants that the comparison must notice."""

import numpy as np
import pytest
from amaranth.hdl import Mux, Signal
from amaranth.lib.wiring import In

import vitruvian.hdl.sparse.os_core
from vitruvian.golden.sparse.names import FORMATS, PLUS, TIMES
from vitruvian.hdl.sparse import OSConfig, OSCore, Plus, Times
from vitruvian.hdl.sparse import config as sizes
from vitruvian.hdl.sparse.operators import identity_of
from vitruvian.sim.bench.sparse.batch import compare_columns
from vitruvian.sim.bench.sparse.traffic import columns, lengths, zeros
from vitruvian.sim.rtl import compile, compile_unit

#: A small core, which builds fast.
SMALL = OSConfig(lanes=4, format="fp16")


def checked(model, config=SMALL, count=300, **options):
    rng = np.random.default_rng(5)
    sizes = lengths(rng, count, config.lanes)
    beats = columns(rng, sizes, config.lanes, config.format)
    result = compare_columns(model, config, beats, seed=5, **options)
    return result + compare_columns(model, config, zeros(beats, "fp16"), seed=5, **options)


@pytest.mark.parametrize("stall_rate", [0, 0.5])
def test_columns_equal_golden(stall_rate):
    result = checked(compile_unit(OSCore, config=SMALL), count=1000, stall_rate=stall_rate)
    assert not result.mismatches and result.vectors > 400, result.examples


def test_the_operators_and_formats_are_those_of_golden():
    assert sizes.FORMATS == FORMATS
    assert [x.name.lower() for x in Plus] == list(PLUS)
    assert [x.name.lower() for x in Times] == list(TIMES)


def test_the_traffic_has_every_kind_of_column():
    rng = np.random.default_rng(5)
    beats = columns(rng, lengths(rng, 300, 4), 4, "fp16")
    marks = beats.last.sum(axis=1)
    empty = beats.last & ~beats.present
    long = (marks[1:-1] == 0) & (marks[2:] > 0)
    for kind in (marks > 2, empty, long, ~beats.present & ~beats.last, beats.last[:, -1]):
        assert kind.sum() > 10
    assert {*beats.plus.tolist()} == {*PLUS} and {*beats.times.tolist()} == {*TIMES}


def test_latency_and_rate():
    rng = np.random.default_rng(6)
    beats = columns(rng, [1] * 200, 4, "fp16", gaps=0)
    result = compile_unit(OSCore, config=SMALL).stream(
        inputs={"i": beats.payload()}, outputs={"o": 50}
    )
    first = result.input_cycles["i"][0] + OSCore(config=SMALL).latency
    assert result.output_cycles["o"].tolist() == list(range(first, first + 50))


class Mutants(OSCore):
    """A core with one of several mistakes, which an input chooses, so that one build has them all.

    0: none. 1: a column that is longer than a beat has only its last beat. 2: a lane without an
    element takes part in a reduction. 3: a node takes its block's last lane instead of the mark of
    the first column. 4: a minimum of zeros keeps the sign of the first operand, as a comparison of
    numbers would. 5: the identity of "max" is that of "min".
    """

    mutant: Signal

    def _derived_ports(self):
        return {"mutant": In(3)}

    def _join(self, m, name, plus, x, x_some, y, y_some):
        right = super()._join(m, name, plus, x, x_some, y, y_some | (self.mutant == 2))
        zeros = ~x[:-1].any() & ~y[:-1].any() & x_some & y_some & (plus == Plus.MIN)
        result = Mux(zeros & (self.mutant == 4), x, right)
        return Mux(self.mutant == 1, y, result) if name == "accumulator" else result

    def _select(self, m, name, rank, start, stop):
        chosen, value, some = super()._select(m, name, rank, start, stop)
        if stop - start == 1 or name == "beat":
            return chosen, value, some
        wrong, end = self.mutant == 3, stop - 1
        chosen = [*(bit & ~wrong for bit in chosen[:-1]), chosen[-1] | wrong]
        return chosen, Mux(wrong, rank.values[end], value), Mux(wrong, rank.some[end], some)

    def elaborate(self, platform):
        def identity(m, plus, format):
            wrong = (plus == Plus.MAX) & (self.mutant == 5)
            return Mux(wrong, format.infinity, identity_of(m, plus, format))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(vitruvian.hdl.sparse.os_core, "identity_of", identity)
            return super().elaborate(platform)


def test_mutants_of_the_tree_are_noticed():
    model = compile(Mutants(config=SMALL))
    noticed = [bool(checked(model, held={"mutant": n}).mismatches) for n in range(6)]
    assert noticed == [False, True, True, True, True, True]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lanes": 0}, "lanes must be between 1 and 64, not 0"),
        ({"lanes": 6}, "lanes must be one of 1, 2, 4, 8, 16, 32, 64, not 6"),
        ({"format": "fp8e4m3"}, "format must be one of fp16, bf16, fp32, not 'fp8e4m3'"),
    ],
)
def test_a_wrong_size_is_refused(changes, message):
    with pytest.raises(ValueError) as error:
        OSConfig(**changes)
    assert str(error.value) == message


def test_a_wrong_config_is_refused():
    with pytest.raises(TypeError, match="config must be an OSConfig, not 8"):
        OSCore(config=8)  # type: ignore[arg-type]
