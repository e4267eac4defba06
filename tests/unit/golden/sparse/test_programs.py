"""Programs of the element-wise core against NumPy, and compiled graphs against plain execution."""

from typing import Any

import numpy as np
import pytest

from vitruvian.golden.sparse.applications import (
    bfs,
    bicgstab,
    cg,
    gmres,
    kcore,
    knn,
    pagerank,
    sssp,
)
from vitruvian.golden.sparse.compiler import FOLDS, compile_nodes, runs_on_the_core
from vitruvian.golden.sparse.dependency import pairs
from vitruvian.golden.sparse.elementwise import FUNCTIONS, REDUCTIONS, apply
from vitruvian.golden.sparse.execute import begin, ended, execute, operand
from vitruvian.golden.sparse.graph import Ewise, Graph, Node, Reduce, Swap, Vxm
from vitruvian.golden.sparse.passes import compile_pair, live_after, scalars_of, split
from vitruvian.golden.sparse.program_streams import execute_program, streams
from vitruvian.golden.sparse.programs import ProgramStep, ProgramWrite, SparseInstruction, run
from vitruvian.golden.sparse.storage import Sparse

F32 = np.float32
LANES = 4


def test_an_instruction_is_numpys_operation_in_float32():
    rng = np.random.default_rng(1)
    # Small whole numbers and their halves, so that equal numbers and zeros occur.
    a, b, c = (rng.integers(-4, 5, 64).astype(F32) / F32(2) for _ in range(3))
    third = F32(1) / F32(3)
    a, b = (
        np.where(rng.random(64) < 0.3, a * third, a),
        np.where(rng.random(64) < 0.3, b * third, b),
    )
    expected = {
        "equal": a == b, "less": a < b, "and": (a != 0) & (b != 0), "or": (a != 0) | (b != 0),
        "add": a + b, "sub": a - b, "mul": a * b, "min": np.minimum(a, b), "max": np.maximum(a, b),
        "copy": a, "abs": np.abs(a), "not": a == 0, "where": np.where(a != 0, b, c),
        "exchange": a[np.arange(64) ^ 8],
    }  # fmt: skip
    registers = np.stack([a, b, c, c]).view(np.uint32)
    for op, value in expected.items():
        i = SparseInstruction(op=op, d=2, a=0, b=3 if op == "exchange" else 1, end=True)
        commands = [
            ProgramWrite(address=0, instruction=i),
            ProgramStep(address=0, present=np.ones(64, bool)),
        ]
        got = run(commands, registers, {}, "fp32").registers
        assert (got[2].view(F32) == value.astype(F32)).all(), op
        assert (got[[0, 1, 3]] == registers[[0, 1, 3]]).all()


def test_lanes_without_an_element_keep_their_registers():
    i = SparseInstruction(op="add", d=0, a=1, b=1, end=True)
    registers = np.array([[0, 0], [0x3C00, 0x3C00]], np.uint16)
    step = ProgramStep(address=0, present=np.array([True, False]))
    outcome = run([ProgramWrite(address=0, instruction=i), step], registers, {}, "fp16")
    assert outcome.registers[0].tolist() == [0x4000, 0]


def test_a_step_needs_written_instructions_and_items():
    step = ProgramStep(address=1, present=np.ones(2, bool))
    registers = np.zeros((4, 2), np.uint16)
    with pytest.raises(ValueError, match="address must be that of a written instruction, not 1"):
        run([step], registers, {}, "fp16")
    load = ProgramWrite(address=1, instruction=SparseInstruction(op="load", a=1, end=True))
    with pytest.raises(ValueError, match="v must have an item for each load"):
        run([load, step], registers, {}, "fp16")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"op": "div"}, "op must be one of"),
        ({"op": "store", "d": 2}, "d must be between 0 and 1, not 2"),
        ({"op": "load", "a": 2}, "a must be between 0 and 1, not 2"),
    ],
)
def test_a_wrong_instruction_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        SparseInstruction(**fields)


def fold(function, values):
    """Fold in float32: a partial result per lane, then pairs of lanes at distances 1, 2, ….

    The first lane's value suffices, because a pair of lanes gives the same in both orders.
    """
    code = {"add": np.add, "min": np.minimum, "max": np.maximum}.get(function)
    lanes = np.full(LANES, FOLDS[function], F32)
    for n, value in enumerate(values):
        x = lanes[n % LANES]
        y = code(x, value) if code else F32(bool(x) or bool(value))
        lanes[n % LANES] = y
    while len(lanes) > 1:
        x, y = lanes[0::2], lanes[1::2]
        lanes = code(x, y) if code else ((x != 0) | (y != 0)).astype(F32)
    return lanes[0]


def rounded(node, tensors):
    """Execute a node with golden's functions, and round its result to float32."""
    operands = tuple(operand(tensors, each) for each in node.inputs)
    if isinstance(node, Reduce):
        if node.function in FOLDS:
            tensors[node.out] = np.float64(fold(node.function, np.asarray(operands[0], F32)))
            return
        table = REDUCTIONS
    else:
        table = FUNCTIONS
    value = apply(table[node.function], tuple(np.asarray(F32(x), np.float64) for x in operands))
    tensors[node.out] = np.asarray(np.asarray(value, F32), np.float64)


def graph_of(seed, n=19, share=0.15):
    rng = np.random.default_rng(seed)
    full = np.triu(rng.random((n, n)) < share, 1)
    rows, columns = np.nonzero(full | full.T)
    return rows, columns, n


def problems():
    rows, columns, n = graph_of(1)
    ones = np.ones(len(rows))
    plain = Sparse.from_entries(rows, columns, ones, (n, n))
    rng = np.random.default_rng(2)
    weights = rng.random((n, n)) + 0.1
    weighted = Sparse.from_entries(rows, columns, (weights + weights.T)[rows, columns], (n, n))
    own = np.arange(n)
    spd = Sparse.from_entries(
        np.concatenate([rows, own]), np.concatenate([columns, own]),
        np.concatenate([-ones, np.full(n, 9.0)]), (n, n),
    )  # fmt: skip
    b = rng.standard_normal(n)
    yield pagerank(plain)
    yield bfs(plain, source=3)
    yield sssp(weighted, source=3)
    yield knn(plain, source=3, hops=3)
    yield kcore(plain)
    yield cg(spd, b, tolerance=1e-3)
    yield bicgstab(spd, b, tolerance=1e-3)
    yield gmres(spd, b, restart=3, tolerance=1e-3)


@pytest.mark.parametrize("problem", list(problems()), ids=lambda problem: problem.graph.name)
def test_groups_on_the_core_equal_plain_execution_in_float32(problem):
    """Run the body twice: node by node in float32, and with compiled passes of golden's core."""
    graph = problem.graph
    tensors = begin(graph, problem.matrices, problem.given)
    plain: dict[str, Any] = {
        k: np.asarray(np.asarray(v, F32), np.float64) for k, v in tensors.items()
    }
    core = dict(plain)
    groups = list(split(graph, scalars=scalars_of(graph, problem.given), lanes=LANES))
    assert [node for nodes, _ in groups for node in nodes] == list(graph.body)
    passes = sum(program is not None for _, program in groups)
    assert passes and passes < sum(runs_on_the_core(node) for node in graph.body)
    for _ in range(2):
        if ended(graph, plain):
            break
        for nodes, program in groups:
            if program is not None:
                stored, _ = execute_program(program, core, lanes=LANES)
                core.update(stored)
            for node in nodes:
                for into in (plain,) if program is not None else (plain, core):
                    if isinstance(node, (Vxm, Swap)):
                        execute(node, into, problem.matrices)
                        into.update({k: np.float64(F32(v)) for k, v in into.items()})
                    else:
                        rounded(node, into)
        alive = live_after(graph, len(graph.body) - 1)
        for name in alive:
            assert np.array_equal(plain[name], core[name], equal_nan=True), name
    assert len(alive) > 1


@pytest.mark.parametrize("problem", list(problems())[:5], ids=lambda problem: problem.graph.name)
def test_the_program_of_a_fused_pair_equals_its_nodes_in_float32(problem):
    graph = problem.graph
    (pair,) = pairs(graph)
    program, left = compile_pair(graph, pair, scalars=scalars_of(graph, problem.given), lanes=LANES)
    rng = np.random.default_rng(5)
    n = 19
    names = {name for name in program.constants if isinstance(name, str)}
    plain: dict[str, Any] = {name: np.float64(F32(rng.random())) for name in sorted(names)}
    vectors = sorted({*program.vectors, pair.first.out})
    # Zeros and ones are truth values, which some vectors are.
    plain |= {name: np.float64(rng.integers(0, 3, n) / 2) for name in vectors}
    stored, _ = execute_program(program, plain, lanes=LANES)
    nodes = (*pair.before, *pair.streamed, *pair.after)
    for node in nodes:
        assert not isinstance(node, Swap)
        if not any(node is each for each in left) and node.out not in plain:
            rounded(node, plain)
    assert pair.second.vector in stored
    assert set(stored) == {*program.results, *program.scalars, pair.second.vector}
    for name, value in stored.items():
        assert np.array_equal(plain[name], value), name


def test_a_program_can_be_read():
    """PageRank's pass, as docs/units/sparse_cores.md explains it."""
    nodes = (Ewise("d", "sub", ("a", "b")), Ewise("e", "abs", ("d",)), Reduce("s", "add", ("e",)))
    program = compile_nodes(nodes, scalars=(), wanted=["s"], product="a", lanes=2)
    text = [f"{i.op} {i.d} {i.a} {i.b}{' end' * i.end}" for i in program.store]
    assert text == [
        "load 0 1 0 end",
        "load 1 0 0", "load 2 1 0", "sub 1 1 2", "abs 1 1 0", "add 0 0 1 end",
        "exchange 1 0 0", "add 0 0 1", "store 1 0 0 end",
    ]  # fmt: skip
    assert (program.prologue, program.body, program.epilogue) == (0, 1, 6)
    assert program.constants == (0.0,) and program.vectors == ("b",) and program.registers == 3


def test_a_select_keeps_operands_that_are_used_again():
    nodes = (
        Ewise("s", "select", ("c", "x", "y")),
        Ewise("t", "select", ("c", "y", "s")),
        Ewise("u", "add", ("t", "y")),
    )
    program = compile_nodes(nodes, scalars=(), wanted=["s", "t", "u"], lanes=LANES)
    rng = np.random.default_rng(6)
    c, x, y = rng.integers(0, 2, 9).astype(float), rng.random(9), rng.random(9)
    stored, _ = execute_program(program, {"c": c, "x": x, "y": y}, lanes=LANES)
    x, y = x.astype(F32), y.astype(F32)
    t = np.where(c, y, np.where(c, x, y))
    assert (stored["s"] == np.where(c, x, y)).all() and (stored["t"] == t).all()
    assert (stored["u"] == t + y).all()


def test_what_the_core_cannot_run_is_refused():
    division = Ewise("d", "div", ("a", "b"))
    total, use = Reduce("s", "add", ("a",)), Ewise("d", "mul", ("a", "s"))
    cases: list[tuple[tuple[Node, ...], dict[str, Any], str]] = [
        ((division,), {}, "nodes must be operations of the core"),
        ((total, use), {}, "vectors must not need a reduction of the same pass"),
        ((Ewise("d", "add", ("a", "b")),), {"registers": 1}, "at most 1 registers, not more"),
        ((Ewise("d", "add", ("a", "b")),), {"instructions": 3}, "at most 3 instructions, not 4"),
    ]
    for nodes, sizes, message in cases:
        with pytest.raises(ValueError, match=message):
            compile_nodes(nodes, scalars=(), wanted=["d"], **sizes)
    with pytest.raises(ValueError, match="vector must be a vector, not the scalar 's'"):
        compile_nodes((total,), scalars=(), wanted=[], vector="s")


def test_a_pair_that_cannot_be_fused_is_refused():
    problem = list(problems())[5]
    (pair,) = pairs(problem.graph)
    with pytest.raises(ValueError, match="pair must be one that can be fused"):
        compile_pair(problem.graph, pair, scalars=())


def test_vectors_of_different_lengths_are_refused():
    program = compile_nodes((Ewise("d", "add", ("a", "b")),), scalars=(), wanted=["d"])
    with pytest.raises(ValueError, match="vectors must have one length"):
        streams(program, {"a": np.ones(3), "b": np.ones(4)})


def test_live_tensors_follow_swaps():
    body = (Ewise("t", "add", ("a", "b")), Swap("a", "t"), Ewise("c", "copy", ("a",)))
    graph = Graph(name="g", given=("a", "b"), body=body, results=("c",), stop=None, matrices=())
    assert live_after(graph, 2) == {"a", "b", "c"}
    assert live_after(graph, 0) == {"t", "b"}
