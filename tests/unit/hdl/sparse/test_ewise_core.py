"""The element-wise core against golden, and mutants that the comparison must notice."""

import numpy as np
import pytest
from amaranth.hdl import Mux, Signal
from amaranth.lib.wiring import In

from vitruvian.golden.sparse.applications import labelprop
from vitruvian.golden.sparse.dependency import pairs
from vitruvian.golden.sparse.names import OPERATIONS
from vitruvian.golden.sparse.passes import compile_pair
from vitruvian.golden.sparse.program_streams import collect, execute_program, streams
from vitruvian.golden.sparse.programs import (
    OUTPUTS,
    ProgramStep,
    ProgramWrite,
    SparseInstruction,
)
from vitruvian.golden.sparse.storage import Sparse
from vitruvian.hdl.sparse import EwiseConfig, EwiseCore
from vitruvian.hdl.sparse.ewise_config import Operation
from vitruvian.hdl.sparse.ewise_core import EwiseLane
from vitruvian.hdl.sparse.operators import one
from vitruvian.sim.bench.sparse.ewise_batch import compare_programs
from vitruvian.sim.bench.sparse.ewise_traffic import commands_payload, random_traffic
from vitruvian.sim.rtl import compile

#: A small core, which builds fast.
SMALL = EwiseConfig(lanes=4, registers=8, instructions=32, format="fp16")


class MutantLane(EwiseLane):
    """A lane with one of the first mistakes of ``Mutants``."""

    mutant: Signal

    def _results(self, results, a, b):
        wrong = one(~a[:-1].any(), SMALL.number)
        negated = Mux(self.mutant == 1, wrong, results[Operation.NOT])
        return {**results, Operation.NOT: negated}

    def _enabled(self, write, op, is_true):
        right = super()._enabled(write, op, is_true)
        return Mux(self.mutant == 2, write & (op != Operation.STORE), right)


class Mutants(EwiseCore):
    """A core with one of several mistakes, which an input chooses, so that one build has them all.

    0: none. 1: a NaN is true. 2: "where" writes all lanes. 3: lanes without an element write.
    4: a load does not wait. 5: a store does not wait. 6: every exchange is over the distance 1.
    """

    mutant: Signal
    shared = ()

    def _derived_ports(self):
        return {"mutant": In(3)}

    def _lane(self):
        lane = MutantLane(config=self.config)
        lane.mutant = self.mutant
        return lane

    def _partner(self, lanes, k, n):
        right = super()._partner(lanes, k, n)
        return Mux(self.mutant == 6, lanes[k ^ 1].value, right)

    def _waits(self, load, store):
        return super()._waits(load & (self.mutant != 4), store & (self.mutant != 5))

    def _writes(self, go, present):
        return super()._writes(go, present | (self.mutant == 3))


@pytest.fixture(scope="module")
def model():
    return compile(Mutants(config=SMALL))


@pytest.fixture(scope="module")
def traffic():
    return random_traffic(np.random.default_rng(3), SMALL, 600)


@pytest.mark.parametrize("stall_rate", [0, 0.5])
def test_stored_items_equal_golden(model, traffic, stall_rate):
    result = compare_programs(model, traffic, seed=3, stall_rate=stall_rate, held={"mutant": 0})
    assert not result.mismatches and result.vectors > 300, result.examples


def test_the_traffic_has_every_operation_and_partial_masks(traffic):
    written = {c.instruction.op for c in traffic.commands if isinstance(c, ProgramWrite)}
    assert written == {*OPERATIONS}
    counts = [int(c.present.sum()) for c in traffic.commands if isinstance(c, ProgramStep)]
    assert {*counts} == {0, 1, 2, 3, 4} and traffic.count > 1500


@pytest.mark.parametrize("mutant", [1, 2, 3])
def test_mutants_of_the_lanes_are_noticed(model, traffic, mutant):
    assert compare_programs(model, traffic, seed=3, held={"mutant": mutant}).mismatches


def test_the_shortest_traffic_has_every_exchange(model):
    """Regression: with few vectors, no program had an exchange over more than one lane."""
    short = random_traffic(np.random.default_rng(1), SMALL, 0)
    assert not compare_programs(model, short, seed=1, held={"mutant": 0}).mismatches
    assert compare_programs(model, short, seed=1, held={"mutant": 6}).mismatches


@pytest.mark.parametrize("mutant", [4, 5])
def test_mutants_that_do_not_wait_hang_or_lose_items(model, traffic, mutant):
    try:
        result = compare_programs(
            model, traffic, seed=3, stall_rate=0.5, held={"mutant": mutant}, quiet_limit=500
        )
    except RuntimeError as error:
        assert "w" in str(error)
    else:
        assert result.mismatches


def test_a_program_takes_a_cycle_for_each_instruction(model):
    every = np.ones(4, bool)
    program = [
        SparseInstruction(op="store", d=0, a=1),
        SparseInstruction(op="copy", d=2, a=1),
        SparseInstruction(op="store", d=1, a=2, end=True),
    ]
    commands = [ProgramWrite(address=n, instruction=i) for n, i in enumerate(program)]
    commands += [ProgramStep(address=0, present=every)] * 5
    empty = np.zeros((0, 4), np.uint16)
    result = model.stream(
        inputs={"command": commands_payload(commands), "x": empty, "v": empty},
        outputs={"y": 5, "w": 5},
        held={"mutant": 0},
    )
    first = int(result.input_cycles["command"][3])
    latency = EwiseCore(config=SMALL).latency
    assert result.input_cycles["command"][3:].tolist() == [first + n for n in (0, 3, 6, 9, 12)]
    for name, place in (("y", 0), ("w", 2)):
        expected = [first + latency + place + 3 * n for n in range(5)]
        assert result.output_cycles[name].tolist() == expected


def test_a_compiled_pass_of_label_propagation_equals_golden(model):
    rng = np.random.default_rng(4)
    n = 21
    rows, columns = np.nonzero(rng.random((n, n)) < 0.2)
    matrix = Sparse.from_entries(rows, columns, np.ones(len(rows)), (n, n))
    graph = labelprop(matrix, [0] + [-1] * (n - 1)).graph
    (pair,) = pairs(graph)
    program, left = compile_pair(
        graph, pair, scalars={"tolerance"}, lanes=4, registers=8, instructions=32
    )
    assert not left
    tensors = {name: rng.random(n) for name in (*program.vectors, pair.first.out)}
    tensors |= {"tolerance": 0.3, "labelled": rng.integers(0, 2, n)}
    expected, outcome = execute_program(program, tensors, lanes=4, format="fp16")
    commands, inputs = streams(program, tensors, lanes=4, format="fp16")
    run = model.stream(
        inputs={"command": commands_payload(commands), **inputs},
        outputs={name: len(outcome.values[name]) for name in OUTPUTS},
        held={"mutant": 0},
        stall_rate=0.2,
    )
    got = collect(program, {k: run.outputs[k]["values"] for k in OUTPUTS}, n, "fp16")
    assert set(got) == set(expected) and len(got) == 3
    for name, value in expected.items():
        assert np.array_equal(got[name], value), name


def test_the_operations_have_the_order_of_golden():
    assert [x.name.lower() for x in Operation] == list(OPERATIONS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lanes": 3}, "lanes must be one of 1, 2, 4, 8, 16, 32, 64, not 3"),
        ({"registers": 2}, "registers must be one of 4, 8, 16, 32, 64, not 2"),
        ({"instructions": 7}, "instructions must be one of 8, 16, 32, 64, 128, 256, not 7"),
        ({"format": "int8"}, "format must be one of fp16, bf16, fp32, not 'int8'"),
    ],
)
def test_a_wrong_size_is_refused(changes, message):
    with pytest.raises(ValueError) as error:
        EwiseConfig(**changes)
    assert str(error.value) == message


def test_a_wrong_config_is_refused():
    with pytest.raises(TypeError, match="config must be an EwiseConfig, not 8"):
        EwiseCore(config=8)  # type: ignore[arg-type]
