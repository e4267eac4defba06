"""Matrix units with semirings: errors, the distance between beats, mutants."""

from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Const

import vitruvian.hdl.cube.datapath
from vitruvian.hdl.cube import CONFIGS, MatrixUnit, MatrixUnitConfig
from vitruvian.hdl.cube.control import Sequencer
from vitruvian.hdl.cube.ports import operation_enum
from vitruvian.sim.bench.cube.batch import compare_traffic
from vitruvian.sim.bench.cube.traffic import make_traffic
from vitruvian.sim.rtl import compile

UNIT = CONFIGS["simd2_4x4"]
SMALL = replace(UNIT, m=1, n=2, operations=("mma", "minplus", "maxmin", "orand"))
#: A unit without sums of products, which compiles fast.
QUICK = replace(SMALL, n=1, k=2, operations=("maxmin", "orand"))
PLAIN = MatrixUnitConfig(m=4, n=4, k=4, precisions=("fp16",))


def result(config=SMALL, *, beats=4000, stall_rate=0.2, **traffic):
    stimuli = make_traffic(config, beats=beats, seed=5, **traffic)
    model = compile(MatrixUnit(config=config))
    return compare_traffic(model, stimuli, stall_rate=stall_rate, seed=5)


@pytest.mark.parametrize("config", [SMALL, QUICK])
def test_without_a_mutation_it_passes(config):
    comparison = result(config)
    assert comparison.vectors > 1500 and comparison.mismatches == 0


better = vitruvian.hdl.cube.datapath.better


def without_identity(m, *args, keep, **rest):
    """Combine a beat that starts from zero with the old value of its slot."""
    return better(m, *args, keep=Const(1, 1), **rest)


def not_negated_back(m, *args, mode, **rest):
    """Leave the result of ⊕ = max negated."""
    return better(m, *args, mode=mode | {"turn": Const(0, 1)}, **rest)


def never_true(m, new, true, *args, **rest):
    """Ignore true pairs of operands."""
    return better(m, new, Const(0, 1), *args, **rest)


@pytest.mark.parametrize("mutant", [without_identity, not_negated_back, never_true])
def test_a_mutant_of_the_last_step_fails(monkeypatch, mutant):
    monkeypatch.setattr(vitruvian.hdl.cube.datapath, "better", mutant)
    assert result(QUICK).mismatches


def test_sums_that_do_not_wait_are_caught(monkeypatch):
    class Hasty(Sequencer):
        def elaborate(self, platform):
            self.late = Const(1, 1)  # pyright: ignore[reportAttributeAccessIssue]
            return super().elaborate(platform)

    monkeypatch.setattr("vitruvian.hdl.cube.unit.Sequencer", Hasty)
    config = replace(SMALL, n=1, operations=("mma", "orand"))
    assert result(config, operations=("mma",)).mismatches


def test_semirings_take_a_beat_a_cycle_in_one_slot():
    """A semiring reads its slot when it writes it, whereas sums wait for each other."""
    cycles = {}
    model = compile(MatrixUnit(config=SMALL))
    for op in ("minplus", "mma"):
        traffic = make_traffic(
            SMALL,
            beats=256,
            seed=1,
            operations=(op,),
            slots=np.zeros(256, int),
            lengths=(256,),
            emit_rate=0,
        )
        run = model.stream(inputs=traffic.inputs, outputs={"o": 1})
        assert (run.outputs["o"] == traffic.d).all()
        cycles[op] = int(run.output_cycles["o"][-1]) + 1
    assert cycles["minplus"] == 256 + SMALL.latency_cycles
    assert cycles["mma"] > 256 * (SMALL.pipeline + 1)


def test_opcodes_are_indices_of_the_operations():
    assert [x.name for x in operation_enum(SMALL.operations)] == [
        "MMA",
        "MINPLUS",
        "MAXMIN",
        "ORAND",
    ]
    assert SMALL.operation_bits == 2 and UNIT.operation_bits == 4 and PLAIN.operation_bits == 0
    shuffled = replace(SMALL, operations=("orand", "maxmin", "mma", "minplus"))
    assert shuffled == SMALL
    assert UNIT.pairs("addnorm") == 1 and UNIT.pairs("minplus") == 4


def test_a_unit_with_mma_only_is_the_plain_unit():
    assert not PLAIN.semirings and PLAIN.merge_cycles == 0
    assert PLAIN == replace(PLAIN, operations=("mma",))
    assert UNIT.latency_cycles == PLAIN.latency_cycles + 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"operations": ()}, "operations must be different names, at least one"),
        ({"operations": "minplus"}, "operations must be different names, not 'minplus'"),
        ({"operations": ("minplus", "minplus")}, "operations must be different names"),
        ({"operations": ("plusmin",)}, "op must be one of mma, minplus"),
        (
            {"precisions": ("fp16", "bf16")},
            r"precisions must be \('fp16',\) with sparsity or operations",
        ),
        (
            {"preset": "a100"},
            "preset must be 'ieee' with sparsity or operations other than mma, not 'a100'",
        ),
        ({"output": "fp16"}, "output must be 'fp32' with sparsity or operations"),
        ({"assignment": "pipelined"}, "assignment must be 'edge' with sparsity or operations"),
        ({"k": 6}, "k must be a multiple of 4 with addnorm, not 6"),
    ],
)
def test_errors_of_a_configuration(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(UNIT, assignment=changes.pop("assignment", None), **changes)
