"""Call every compiled loop of golden and sim with operands that reach its extreme indices.

``test_compiled_loops`` runs this program in a process in which Numba checks every index:
``NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=EMPTY python -m tests.support.compiled_loops``
"""

import argparse
import ast
import importlib
import inspect
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import ml_dtypes
import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

import vitruvian.golden.fp
from tests.support.davinci_programs import random_accesses, random_lowered
from tests.support.golden_cases import directed_codes, random_codes, sparse_codes
from tests.support.machine_operands import operands as machine_operands
from tests.support.sparse_problems import PROBLEMS, matrix, problem
from vitruvian.common import compiling
from vitruvian.common.errors import UserError
from vitruvian.common.matrix_market import read_entries
from vitruvian.golden.cube.doubles import double_mmad
from vitruvian.golden.cube.mmad import fits, plain_mmad
from vitruvian.golden.cube.mmad_compiled import compiled_mmad
from vitruvian.golden.fp import FORMATS, FloatFormat, dot_spec, fused_dot
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.golden.machines.products import _by_rows
from vitruvian.golden.machines.table import find
from vitruvian.golden.simd2 import Op, mmo
from vitruvian.golden.sparse import SEMIRINGS, Sparse, mxm, triangles, vxm
from vitruvian.golden.sparse.applications import APPLICATIONS
from vitruvian.golden.sparse.elementwise import FUNCTIONS, REDUCTIONS
from vitruvian.golden.sparse.execute import run
from vitruvian.golden.sparse.frontier import has_frontier, run_frontier
from vitruvian.golden.sparse.oei import run_oei
from vitruvian.golden.sparse.reuse import held_elements
from vitruvian.golden.sums.products import Operands, compute
from vitruvian.golden.sums.products import text as kernel_text
from vitruvian.sim.davinci import Program, Unit, View, load_chip
from vitruvian.sim.davinci.checks import memory
from vitruvian.sim.davinci.checks.check import check_lowered
from vitruvian.sim.davinci.semantics import Functional
from vitruvian.sim.davinci.semantics.vectors_compiled import compiled as do_compiled
from vitruvian.sim.davinci.timing import engine
from vitruvian.sim.davinci.timing.lowering import lower
from vitruvian.sim.sparse.application import simulate_application
from vitruvian.sim.sparse.architecture import load_architecture
from vitruvian.sim.sparse.matrix_market import read_matrix

ROOT = Path(__file__).parent.parent.parent
#: Rows of the table of machines that reach every branch of the kernels of golden.sums.matrix
KERNEL_ROWS = (
    *("cdna1_mfma_fp16_fp32", "cdna2_mfma_fp16_fp32", "cdna2_mfma_bf16_fp32"),
    *("cdna2_mfma_fp64_fp64", "cdna3_mfma_bf16_fp32", "cdna3_mfma_fp8xbf8_fp32"),
    *("amx_tdpbf16ps", "avx512_vdpbf16ps", "gaudi1_bf16_fp32", "b200_mxf4_fp32"),
    *("gaudi2_bf16_fp32", "gaudi2_fp32_fp32", "gaudi3_fp16_fp32", "rvbna_bf16_n8_fp32"),
    *("arm_bfdot_ebf0", "wh_mvmul_bf16_fp32_hifi3", "bh_mvmul_fp16_fp16_lofi"),
    *("a100_mma_bf16_fp32", "h200_mmasync_e4m3_fp32"),
)


# The compiled functions


def modules() -> Iterator:
    """Import and yield every module of golden and sim whose text contains the word numba."""
    for path in sorted(
        path for folder in ("golden", "sim") for path in (ROOT / folder).rglob("*.py")
    ):
        if "numba" in path.read_text(encoding="utf-8"):
            yield importlib.import_module(dotted(path))


def dotted(path: Path) -> str:
    """Return the name by which a module is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts if parts[0] == "vitruvian" else ("vitruvian", *parts))


def on_demand_files(pattern: str) -> list[Path]:
    """Return the files of the folders whose loops are compiled only for large programs."""
    folders = (ROOT / "sim", ROOT / "vitruvian" / "common")
    return sorted(path for folder in folders for path in folder.rglob(pattern))


def compiled_on_demand() -> Iterator[str]:
    """Yield the names of the functions that modules pass to ``compiling.fitting``."""
    for path in on_demand_files("*.py"):
        text = path.read_text(encoding="utf-8")
        if "fitting" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "fitting":
                yield ast.unparse(node.args[0]).split(".")[-1]


def loops() -> dict[str, Dispatcher]:
    """Return every compiled function by its full name.

    The result includes the functions that are compiled only for large programs.
    """
    dispatchers = {}
    for module in modules():
        for name, value in vars(module).items():
            if isinstance(value, Dispatcher) and value.py_func.__module__ == module.__name__:
                if value.targetoptions.get("inline") == "always":
                    continue  # it is compiled within those that call it
                dispatchers[f"{module.__name__}.{name}"] = value
    on_demand = set(compiled_on_demand())
    for path in on_demand_files("*compiled.py"):
        module = importlib.import_module(dotted(path))
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if name in on_demand and function.__module__ == module.__name__:
                dispatchers[f"{module.__name__}.{name}"] = compiling.compiled(function)
                on_demand.remove(name)
    if on_demand:
        raise LookupError(f"no module …compiled has {', '.join(sorted(on_demand))}")
    return dispatchers


# Operands


def codes(rng, format, shape) -> np.ndarray:
    """Return random, sparse and directed bit patterns; they have many specials and extremes."""
    kinds = (random_codes, sparse_codes, lambda rng, f, s: rng.choice(directed_codes(f), s))
    chosen = rng.integers(0, len(kinds), shape)
    return np.choose(chosen, [kind(rng, format, shape) for kind in kinds])


def values(rng, dtype, shape) -> np.ndarray:
    """Return the numbers of a type that have such bit patterns."""
    dtype = np.dtype(dtype)
    name = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}[dtype.name]
    return codes(rng, FORMATS[name], shape).view(dtype)


# The cases: each calls the loops of one module.


def dot_sums() -> None:
    """Compute long sums of one and many terms in all formats, with and without a window."""
    rng = np.random.default_rng(1)
    large = FloatFormat("large", exponent_bits=15, fraction_bits=40, storage_bits=64)
    whole = FloatFormat("whole", exponent_bits=3, fraction_bits=60, storage_bits=64)
    wide = [
        dot_spec(input="fp64", output="fp64", k=k, window=window, truncate=truncate)
        for k, window in ((1, 106), (4, 300), (70, 60), (3, 2046), (4, 5000))
        for truncate in ("floor", "magnitude")
    ]
    wide += [PRESETS["exact"].spec(i, o) for i in FORMATS for o in ("fp16", "fp64")]
    wide += [
        dot_spec(input=f, output=f, k=5, window=w) for f in (large, whole) for w in (1, 200, None)
    ]
    wide += [
        dot_spec(input="fp16", output="fp64", k=3, window=90, emax_floor=f) for f in (-999, 999)
    ]
    for spec in wide:
        rows = -(-300 // spec.k)
        a, b = (codes(rng, spec.input, (rows, spec.k)) for _ in range(2))
        c = codes(rng, spec.output, rows)
        result = fused_dot(a, b, c, spec)
        few = max(200 // spec.k, 1)  # so few that the sum is not compiled
        assert (result[:few] == fused_dot(a[:few], b[:few], c[:few], spec)).all(), spec


def products_of_codes() -> None:
    """Compute short and long sums with full and partial strips, for matrices and stacks of them."""
    rng = np.random.default_rng(2)
    specs = [
        PRESETS["ieee"].spec("fp64", "fp64", k=3),
        dot_spec(input="fp64", output="fp64", k=4, window=119, truncate="magnitude"),
        dot_spec(input="fp8e4m3", output="fp8e4m3", k=2, window=1),
        dot_spec(input="bf16", output="tf32", k=7, window=119, rounding="RZ", result_bits=1),
        dot_spec(input="fp16", output="fp32", k=5, window=20, emax_floor=40),
        PRESETS["a100"].spec("tf32"),
        PRESETS["h100"].spec("fp8e4m3", input_b="fp8e5m2"),
    ]
    for spec in specs:
        assert fits(spec, spec.k)
        for lead, m, k, n in (
            ((), 1, 1, 129),
            ((), 140, 2, 2),
            ((3,), 2, 3, 128),
            ((2, 0), 4, 1, 4),
        ):
            k = spec.k * k if k > 1 else (spec.k + 1) // 2
            a = codes(rng, spec.input, (*lead, m, k))
            b = codes(rng, spec.input_b, (k, n))
            c = codes(rng, spec.output, (*lead, m, n))
            result = compiled_mmad(a, b, c, spec)
            if result.size:
                part = np.s_[..., :3, :3]
                expected = plain_mmad(a[..., :3, :], b[:, :3], c[part], spec)
                assert (result[part] == expected).all(), spec


def products_of_doubles() -> None:
    """Compute products with FP64 results in full and partial strips, tiles and steps."""
    rng = np.random.default_rng(7)
    spec = PRESETS["ieee"].spec("fp64", "fp64", k=4)
    for m, k, n in ((1, 1, 1), (70, 4, 257), (3, 9, 256)):
        shapes = ((m, k), (k, n), (m, n))
        a, b, c = (rng.standard_normal(shape).view(np.uint64) for shape in shapes)
        double_mmad(a, b, c, spec)


def places(rule) -> set[tuple[str, str, str]]:
    """Return the arrays and indices in a rule's kernel, each with its function and its loop."""
    found = set()

    def visit(node: ast.AST, function: str, loop: str) -> None:
        if isinstance(node, ast.For):
            loop = f"{ast.unparse(node.target)} in {ast.unparse(node.iter)}"
        is_call = isinstance(node, ast.Call) and ast.unparse(node.func) == "np.empty"
        if is_call or isinstance(node, ast.Subscript):
            found.add((function, loop, ast.unparse(node)))
        for child in ast.iter_child_nodes(node):
            visit(child, function, loop)

    text = kernel_text(rule)
    assert text is not None, f"{rule} must have a kernel"
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            visit(node, node.name, "")
    return found


@cache
def covering_rows() -> list[str]:
    """Return rows of ``KERNEL_ROWS`` whose kernels have every place that any of them has."""
    by_row = {stem: places(find(stem).rule) for stem in KERNEL_ROWS}
    left, chosen = set().union(*by_row.values()), []
    while left:
        chosen.append(max(by_row, key=lambda stem: len(by_row[stem] & left)))
        left -= by_row[chosen[-1]]
    return chosen


def products_of_machines() -> None:
    """Compute products by generated kernels, in full and partial strips, tiles and steps."""
    rng = np.random.default_rng(4)
    spec = PRESETS["b200"].spec("fp8e4m3", "fp32")
    for m, k, n in ((70, spec.k, 257), (3, 3 * spec.k, 5), (2, spec.k - 1, 256)):
        a, b = codes(rng, spec.input, (m, k)), codes(rng, spec.input, (k, n))
        c = codes(rng, spec.output, (m, n))
        got = compute(Operands(a, b, c), spec.replace(k=min(k, spec.k)))
        assert (got == plain_mmad(a, b, c, spec)).all(), spec
    _products(rng, covering_rows())


def products_of_other_machines() -> None:
    """Compute products by kernels whose places are all in those of ``products_of_machines``."""
    others = [stem for stem in KERNEL_ROWS if stem not in covering_rows()]
    _products(np.random.default_rng(4), others)


def _products(rng, stems) -> None:
    for stem in stems:
        rule = find(stem).rule
        for kind, *sizes in (("bits", 1, 1, 1, 1), ("few", 66, 257, 1, 13), ("tiny", 3, 256, 3, 7)):
            x = machine_operands(rng, rule, kind, *sizes)
            assert (compute(x, rule) == _by_rows(x, rule)).all(), stem


def matrices_of_values() -> None:
    """Compute every operation on empty, thin and large matrices, with and without specials."""
    rng = np.random.default_rng(3)
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float32):
        for m, k, n in ((1, 1, 1), (3, 0, 4), (0, 3, 4), (2, 37, 1025), (9, 16, 257), (300, 5, 2)):
            a, b = values(rng, dtype, (m, k)), values(rng, dtype, (k, n))
            c = values(rng, np.float32, (m, n))
            for op in Op:
                for x, y, z in ((a, b, c), (np.abs(a), np.abs(b), np.abs(c))):
                    x, y, z = (np.where(np.isnan(v), 1, v).astype(v.dtype) for v in (x, y, z))
                    mmo(op, x, y, z)
                if op.plus != "add":
                    mmo(op, a, b, c)
                    continue
                for lanes in (1, 4, 16, 40):
                    mmo(op, a, b, c, k=lanes)
                    if op is Op.ADDNORM and lanes % 4 == 0:
                        mmo(op, a, b, c, k=lanes, squares="products")


def engine_programs() -> None:
    """Run programs on one to four cores, with and without deadlocks and blocks of transfers."""
    empty = random_lowered(0)
    empty = replace(
        empty,
        **{
            name: getattr(empty, name)[:0]
            for name in ("unit", "kind", "init", "data", "drain", "bus", "rate")
        },
        first=np.zeros(3, np.int64),
        need_first=np.zeros(1, np.int64),
        need=empty.need[:0],
        lag=empty.lag[:0],
    )
    engine.run(empty, check=False)
    program = Program(load_chip("ascend310"))
    core = program.core()
    units = (Unit.V, Unit.M, Unit.MTE1, Unit.MTE2, Unit.MTE3)
    for act in (core.set_flag, core.wait_flag):  # far more wake calls than there are queues
        for unit in units:
            for event in range(8):
                act(Unit.S, unit, event)
    assert engine.run(*lower(program), check=False).complete
    match = compiling.compiled(
        importlib.import_module("vitruvian.sim.davinci.timing.matching_compiled").match
    )
    for seed in range(120):
        low = random_lowered(seed, deadlock=seed % 2 == 0, large=seed % 3 == 0, cores=1 + seed % 4)
        blocks = 5 if seed % 5 == 0 and seed % 3 else 0  # large transfers have too many
        engine.run(low, check=False, block_bytes=blocks)
        flag = np.random.default_rng(seed).integers(0, 4, len(low.kind))
        match(low.kind, flag, 4)


def checked_programs() -> None:
    """Check programs with random accesses, which have races and reads of uninitialised bytes.

    The sweep over a memory is done at once or in several parts.
    """
    program = Program(load_chip("ascend310"))
    program.tensor("x", (1000,), "int8")
    for seed in range(80):
        low = random_lowered(seed, size=20, lags=seed % 2 == 0, deadlock=seed % 3 == 0)
        streams = random_accesses(low, np.random.default_rng(seed))
        memory._ENTRIES = (1, 7, 8_000_000)[seed % 3]
        check_lowered(program, low, streams)


def vector_instructions() -> None:
    """Run every operation at both ends of UB, on random bits, with random masks and strides."""
    rng = np.random.default_rng(4)
    core = Program(load_chip("ascend310")).core()
    memory = Functional(core.program).memory(core)
    buffer = memory.buffers["UB"]
    buffer[:] = rng.integers(0, 256, len(buffer), dtype=np.uint8)
    binary = ("vadd", "vsub", "vmul", "vmax", "vmin")
    scalars = ("vadds", "vmuls", "vmaxs", "vmins")
    unary = ("vabs", "vexp", "vln", "vrec", "vrsqrt", "vsqrt", "vrelu")
    for dtype in ("fp16", "fp32"):
        for op in (*binary, *scalars, *unary):
            names = ("dst", "src0", "src1") if op in binary else ("dst", "src")
            fields = {"scalar": 1.5} if op in scalars else {}
            for repeat, block, step in ((1, 1, 8), (3, 1, 8), (255, 1, 8), (5, 0, 0), (4, 9, 3)):
                last = len(buffer) - 32 * (7 * block + (repeat - 1) * step + 1)
                places = {name: int(rng.choice([0, last])) for name in names}
                (instr,) = core.vector(
                    op,
                    {name: View("UB", place, dtype, (), ()) for name, place in places.items()},
                    repeat=repeat,
                    mask=int(rng.integers(1, 1 << 62)),
                    strides=dict.fromkeys(names, (block, step)),
                    **fields,
                )
                if not do_compiled(memory, instr):
                    raise RuntimeError(f"{op} of {dtype} must be compiled")


def sparse_products() -> None:
    """Compute products and folds on matrices with empty and full rows and columns."""
    rng = np.random.default_rng(5)
    for shape in ((0, 0), (1, 1), (7, 7), (20, 3), (3, 20)):
        rows, columns = np.nonzero(rng.random(shape) < 0.3)
        a = Sparse.from_entries(rows, columns, rng.standard_normal(len(rows)), shape)
        x = rng.standard_normal((shape[0], 2))
        for name in SEMIRINGS:
            for stationary in ("output", "input"):
                vxm(x, a, name, stationary=stationary)
        mxm(a, a.transposed)
        if shape[0] == shape[1]:
            triangles(a)
        FUNCTIONS["rows_by"].compute(x, rng.standard_normal((2, 3)))
        for name in ("add", "min", "max", "or"):
            REDUCTIONS[name].compute(x)
    for name in PROBLEMS:
        p = problem(name, 0)
        if has_frontier(p):
            run_frontier(p)
            run_frontier(p, exact=True)
            run_frontier(replace(p, iterations=2))
        for width in (1, 7):
            run_oei(p.graph, p.matrices, p.given, iterations=2, width=width)
        run(p.graph, p.matrices, p.given, iterations=2)
    # Edges with a negative weight, and a cycle of them
    a = matrix(0)
    for lowest in (-0.01, -1.0):
        with suppress(UserError):
            APPLICATIONS["sssp"](a.with_values(np.where(a.rows == 3, lowest, a.row_values)))
    for eager in (False, True):
        held_elements(matrix(0), width=3, eager=eager)


def sparse_machine() -> None:
    """Simulate passes in a large buffer and in one that evicts; order rows by a window."""
    sida = load_architecture()
    small = replace(sida, sub_tensor=4, buffer_bytes=1 << 11)
    rng = np.random.default_rng(6)
    for size in (1, 12, 40):
        rows, columns = np.nonzero(rng.random((size, size)) < 0.2)
        a = Sparse.from_entries(rows, columns, np.ones(len(rows)), (size, size))
        for architecture in (sida, small):
            for reorder in ("none", "windowed"):
                stated = APPLICATIONS["pagerank"](a)
                simulate_application(stated, architecture, reorder=reorder, iterations=4)
            simulate_application(stated, architecture, iterations=4, memory="hbm2")


def matrix_market_files() -> None:
    """Scan files that end anywhere, with short and long numbers."""
    whole = b"%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n"
    whole += b"1 1 1\n3 1 -2.5e3\n 3 2 0.12345678901234567890123\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "matrix.mtx"
        for end in range(len(whole) + 1):
            path.write_bytes(whole[:end])
            try:
                read_matrix(path)
            except UserError:
                continue
        head = b"%%MatrixMarket matrix array real general\n"
        path.write_bytes(head + b"5 1\n1e300\n.5\n18446744073709551615e64\n-1e-64\n1e-23")
        read_matrix(path)
        words = b"4 1\n-Infinity\n1\n\ninf\n1\n"
        for end in range(len(words)):
            path.write_bytes(head + words[:end])
            with suppress(UserError):
                read_entries(path, infinite=True)


CASES: dict[str, Callable[[], None]] = {
    case.__name__: case
    for case in (
        dot_sums,
        products_of_codes,
        products_of_doubles,
        products_of_machines,
        products_of_other_machines,
        matrices_of_values,
        engine_programs,
        checked_programs,
        vector_instructions,
        sparse_products,
        sparse_machine,
        matrix_market_files,
    )
}


def main(argv=None) -> None:
    """Run the cases; raise an exception for a bad index or a loop that no case reaches."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sums", metavar="FILE", help="take golden.fp.dot_compiled from FILE")
    parser.add_argument("--only", choices=CASES, help="run one case")
    parser.add_argument("--without", choices=CASES, nargs="+", help="run all cases but these")
    options = parser.parse_args(argv)
    if not numba.config.BOUNDSCHECK:  # type: ignore[attr-defined]
        raise SystemExit("NUMBA_BOUNDSCHECK must be 1 in the environment, not 0")
    if options.sums:
        described = spec_from_file_location("vitruvian.golden.fp.dot_compiled", options.sums)
        assert described and described.loader
        described.loader.exec_module(module := module_from_spec(described))
        sys.modules["vitruvian.golden.fp.dot_compiled"] = module
        vitruvian.golden.fp.__dict__["dot_compiled"] = module
    compiling.SMALL = 0
    np.seterr(all="ignore")
    for name, case in CASES.items():
        if options.only in (None, name) and name not in (options.without or ()):
            start = time.process_time()
            case()
            print(f"{name}: {time.process_time() - start:.1f} s", flush=True)
    if options.only is None:
        reached = {name: bool(loop.signatures) for name, loop in loops().items()}
        missing = [name for name, is_reached in reached.items() if not is_reached]
        if missing:
            raise SystemExit(f"no case reaches {', '.join(missing)}")
        print(f"{len(reached)} loops")


if __name__ == "__main__":
    main()
