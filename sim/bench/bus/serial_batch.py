"""Rows of ``vitruvian verify`` for the matrix unit at the end of a serial line."""

from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import numpy as np

from vitruvian.golden.fp import from_float
from vitruvian.hdl.bus.serial import SerialUnit
from vitruvian.hdl.catalogue.serial import UNITS
from vitruvian.hdl.catalogue.unit import Configuration
from vitruvian.hdl.cube import MatrixUnitConfig
from vitruvian.hdl.simd2.intconfig import IntConfig
from vitruvian.sim.board.model import LineModel
from vitruvian.sim.board.stream import ModelStream
from vitruvian.sim.host.board import Board
from vitruvian.sim.host.client import Client
from vitruvian.sim.host.products import expected, matmul, operations_of, precisions_of
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result, compare

from .serial import Faults, FaultyStream

(_SERIAL,) = UNITS
#: Share of the requested vectors. A vector is a result, for which many bytes go over the line.
_SHARE = 1 / 1000
_FAULTS = Faults(flip=0.02, lose=0.01, insert=0.01, drop=0.01, follow=0.02)
_MOST_SIZE = 7
_QUIET_BITS = 64


def random_operands(
    rng: np.random.Generator,
    config: MatrixUnitConfig | IntConfig,
    precision: str,
    *,
    addend: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return random matrices of random sizes that fit each other.

    Parameters
    ----------
    precision : str
        A real precision of the unit.
    addend : bool
        If True, the third matrix is one, and otherwise None.
    """
    m, n, k = (int(size) for size in rng.integers(1, _MOST_SIZE, 3, endpoint=True))
    shapes = ((m, k), (k, n))
    if isinstance(config, IntConfig):
        kind = np.iinfo(precision)
        a, b, c = (
            rng.integers(kind.min, kind.max, shape, kind.dtype, endpoint=True)
            for shape in (*shapes, (m, n))
        )
    elif precision == "int8":
        a, b = (rng.integers(-128, 128, shape, dtype=np.int8) for shape in shapes)
        c = rng.integers(-(1 << 20), 1 << 20, (m, n), dtype=np.int32)
    else:
        a, b = (from_float(rng.normal(size=shape), precision) for shape in shapes)
        c = from_float(rng.normal(size=(m, n)), config.output)
    return a, b, c if addend else None


def compare_products(
    model: LineModel,
    config: MatrixUnitConfig | IntConfig,
    *,
    results: int,
    seed: int,
    faults: Faults,
) -> Result:
    """Compare products of a board with golden, over a line with faults.

    Parameters
    ----------
    model : LineModel
        The compiled board, just after its reset.
    config : MatrixUnitConfig or IntConfig
        The parameters of its unit.
    results : int
        Least number of results for each precision and operation.
    seed : int
        Seed of the operands and of the faults.
    faults : Faults
        Faults of the line.
    """
    rng = np.random.default_rng(seed)
    client = Client(FaultyStream(ModelStream(model), faults, seed=seed), timeout=0)
    board = Board.find(client)
    total = Result(vectors=0, mismatches=0)
    for precision in precisions_of(config):
        for operation in operations_of(config):
            done = 0
            while done < results:
                a, b, c = random_operands(rng, config, precision, addend=bool(done % 2))
                options: Any = {"precision": precision, "operation": operation}
                product = matmul(board, a, b, c, **options).d
                right = expected(config, a, b, c, **options)
                rows, columns = (index.ravel() for index in np.indices(product.shape))
                total += compare(
                    f"{operation} {precision} {a.shape[0]}x{b.shape[1]}x{a.shape[1]}",
                    got=product.ravel(),
                    expected=right.ravel(),
                    operands={"row": rows, "column": columns},
                    seed=seed,
                )
                done += product.size
    return total


def _run(configuration: Configuration, vectors: int, seed: int) -> Result:
    core = cast(Any, _SERIAL).build(configuration).core
    # A bit takes as few clock cycles as possible, and faults cost little, so that the run is short.
    unit = SerialUnit(core=core, clock_hz=4_000_000, baud=1_000_000, quiet_bits=_QUIET_BITS)
    model = LineModel(unit, divisor=unit.divisor)
    results = int(vectors * _SHARE) + 20
    return compare_products(model, core.config, results=results, seed=seed, faults=_FAULTS)


def checks() -> Iterator[Check]:
    """Yield a row for every checked configuration of the unit ``serial``."""
    for chosen in _SERIAL.checked:
        c = _SERIAL.default(chosen)
        named = {"preset": c["preset"]} if c["preset"] else {}
        label = " ".join(f"{k}={v}" for k, v in {**named, **chosen}.items())
        yield Check(
            unit="bus.SerialUnit",
            configuration=f"{label}: products over a line with faults",
            run=partial(_run, c),
            weight=12,
        )
