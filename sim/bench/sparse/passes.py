"""Random matrices and passes for the benches of the OEI pipeline and its buffer."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vitruvian.golden.fp.codec import code_dtype, to_float
from vitruvian.golden.sparse.buffer import Column, CSCBeats, csc_beats, csr_beats
from vitruvian.golden.sparse.compiler import SparseProgram, compile_nodes
from vitruvian.golden.sparse.graph import Ewise, Reduce
from vitruvian.golden.sparse.names import PLUS, TIMES
from vitruvian.golden.sparse.pipeline import run_pass
from vitruvian.golden.sparse.program_streams import streams
from vitruvian.golden.sparse.programs import (
    ProgramOutcome,
    ProgramStep,
    ProgramWrite,
    SparseInstruction,
    run,
)
from vitruvian.hdl.sparse.oei_config import Kind, OEIConfig

from .ewise_traffic import command_items
from .traffic import NAMED, codes

#: Forms of random matrices.
FORMS = ("sparse", "band", "arrow", "blocks", "full")


def matrix(
    rng: np.random.Generator, form: str, size: int, elements: int, format: str
) -> list[Column]:
    """Return the columns of a random square matrix with random values.

    Parameters
    ----------
    form : str
        "sparse" has elements anywhere, so that rows and columns are empty; some of them occur
        twice, and the rows of a column are in any order. "band" has elements near the diagonal.
        "arrow" has a full row, a full column and the diagonal. "blocks" has full blocks on the
        diagonal. "full" has all elements.
    size : int
        Number of rows and columns.
    elements : int
        Largest number of elements of "sparse" and of the band.
    format : str
        Format of the values.
    """
    if form == "sparse":
        rows, columns = rng.integers(0, size, (2, elements))
        # One element in ten has the place of the one before it.
        again = rng.random(elements) < 0.1
        rows, columns = (np.where(again, np.roll(each, 1), each) for each in (rows, columns))
    elif form == "band":
        columns = rng.integers(0, size, elements)
        rows = np.clip(columns + rng.integers(-2, 3, elements), 0, size - 1)
    else:
        every = np.arange(size)
        row, column = np.divmod(np.arange(size * size), size)
        tip = int(rng.integers(size))
        block = int(rng.integers(1, 5))
        keep = {
            "arrow": (row == column) | (row == tip) | (column == tip),
            "blocks": row // block == column // block,
            "full": np.broadcast_to(every[0] == 0, row.shape),
        }[form]
        rows, columns = row[keep], column[keep]
    order = np.argsort(columns, kind="stable")
    rows, columns = rows[order], columns[order]
    values = codes(rng, len(rows), format)
    starts = np.searchsorted(columns, np.arange(size + 1))
    pairs = list(zip(rows.tolist(), values.tolist(), strict=True))
    return [pairs[a:b] for a, b in itertools.pairwise(starts.tolist())]


@dataclass(frozen=True, kw_only=True)
class Pass:
    """A pass: a matrix, the vectors, a program between the products, and the results of golden.

    Attributes
    ----------
    columns : list of Column
        The columns of the matrix, padded to whole sub-tensors.
    size : int
        Number of columns without the padding.
    x : (M,) ndarray of unsigned int, codes
    before, after : list of ProgramWrite or ProgramStep
        Commands of the element-wise core before and after the pass.
    body : int
        Address of the program that runs for each group.
    v : (T, N) ndarray of unsigned int, codes
        Items for the element-wise core.
    first, second : (str, str)
        The semirings of the products.
    z, w : (T, N) ndarray of unsigned int, codes
        Items of the element-wise core; lanes without an element are 0.
    z_present, w_present : (T, N) ndarray of bool
    y : (M,) ndarray of unsigned int, codes
    refused : bool
        True if the matrix needs more space than there is.
    """

    columns: list[Column]
    size: int
    x: np.ndarray
    before: list[ProgramWrite | ProgramStep]
    after: list[ProgramWrite | ProgramStep]
    body: int
    v: np.ndarray
    first: tuple[str, str]
    second: tuple[str, str]
    z: np.ndarray = field(repr=False)
    z_present: np.ndarray = field(repr=False)
    w: np.ndarray = field(repr=False)
    w_present: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    refused: bool


def one_pass(
    config: OEIConfig,
    columns: Sequence[Column],
    x: np.ndarray,
    program: SparseProgram,
    tensors: Mapping[str, Any],
    first: tuple[str, str],
    second: tuple[str, str],
) -> Pass:
    """Return a pass with the results of golden.

    Parameters
    ----------
    columns : sequence of Column
        Any number of columns up to that of the configuration.
    x : (M,) ndarray of unsigned int, codes
    program : SparseProgram
        A program with a product and a vector.
    tensors : mapping of str to array_like of float
        The scalars and the other vectors of the program.
    first, second : (str, str)
    """
    c = config
    size = len(columns)
    # A sub-tensor has all of its columns; those beyond the matrix are empty.
    padding = -size % c.columns
    columns = [*columns, *([] for _ in range(padding))]
    x = np.concatenate([x, np.zeros(padding, x.dtype)])
    given = {
        name: np.concatenate([value, np.zeros(padding)]) if np.ndim(value) else value
        for name, value in tensors.items()
    }
    assert program.product is not None and program.body is not None
    # The product is known only when the pass has run; zeros stand for it.
    unknown = {program.product: np.zeros(len(columns))}
    commands, inputs = streams(program, given | unknown, lanes=c.lanes, format=c.format)
    at = [
        n
        for n, k in enumerate(commands)
        if isinstance(k, ProgramStep) and k.address == program.body
    ]
    # Lanes beyond the matrix take no part.
    places = np.arange(len(columns)).reshape(-1, c.lanes) < size
    steps = [ProgramStep(address=program.body, present=present) for present in places]
    before, after = commands[: at[0]], commands[at[-1] + 1 :]
    outcomes: list[ProgramOutcome] = []

    def ewise(product: np.ndarray) -> np.ndarray:
        """Run the program on the first product."""
        registers = np.zeros((c.registers, c.lanes), code_dtype(c.number))
        items = {"x": product.reshape(-1, c.lanes), "v": inputs["v"]}
        outcomes.append(run([*before, *steps, *after], registers, items, c.format))
        return np.where(outcomes[0].present["y"], outcomes[0].values["y"], 0).reshape(-1)

    z, y = run_pass(
        columns, x, ewise, first=first, second=second,
        lanes=c.lanes, width=c.columns, format=c.format,
    )  # fmt: skip
    plan = csr_beats(columns, c.lanes, c.columns, c.capacity)
    present = outcomes[0].present
    return Pass(
        columns=columns, size=size, x=x, before=before, after=after, body=program.body,
        v=inputs["v"], first=first, second=second,
        z=z.reshape(-1, c.lanes), z_present=present["y"],
        w=np.where(present["w"], outcomes[0].values["w"], 0), w_present=present["w"],
        y=y, refused=plan.refused_at is not None,
    )  # fmt: skip


def programs(config: OEIConfig) -> list[SparseProgram]:
    """Return programs between the products.

    The first one is that of PageRank, z = s·y + t. The second one also stores its product and a
    sum of all elements. The third one selects, as a search of levels does.
    """
    nodes: list[tuple[list[Ewise | Reduce], list[str]]] = [
        ([Ewise("p", "mul", ("s", "y")), Ewise("z", "add", ("p", "t"))], []),
        (
            [
                Ewise("p", "mul", ("y", "t")),
                Ewise("z", "sub", ("p", "s")),
                Reduce("n", "add", ("z",)),
            ],
            ["p", "n"],
        ),
        ([Ewise("c", "less", ("y", "t")), Ewise("z", "select", ("c", "y", "t"))], []),
    ]
    return [
        compile_nodes(
            each, scalars={"s"}, wanted=wanted, product="y", vector="z", lanes=config.lanes,
            registers=config.registers, instructions=config.instructions,
        )
        for each, wanted in nodes
    ]  # fmt: skip


def random_passes(
    rng: np.random.Generator, config: OEIConfig, count: int, *, refused: bool = False
) -> list[Pass]:
    """Return random passes that fit in the buffer.

    Parameters
    ----------
    refused : bool
        If True, a pass that does not fit follows.
    """
    choices = programs(config)

    def pair() -> tuple[str, str]:
        if rng.random() < 0.7:
            return NAMED[int(rng.integers(len(NAMED)))]
        return str(rng.choice(PLUS)), str(rng.choice(TIMES))

    found: list[Pass] = []
    while len(found) < count + refused:
        size = int(rng.integers(1, config.rows + 1))
        # More elements than the buffer holds may pass, because space is freed on the way.
        elements = int(rng.integers(0, 2 * config.capacity))
        columns = matrix(rng, str(rng.choice(FORMS)), size, elements, config.format)
        padded = [*columns, *([] for _ in range(-size % config.columns))]
        plan = csr_beats(padded, config.lanes, config.columns, config.capacity)
        # All passes must fit but the one after them, which must be refused.
        if (plan.refused_at is not None) != (len(found) == count):
            continue
        x, t, s = (codes(rng, n, config.format) for n in (size, size, 1))
        tensors = {"s": to_float(s, config.format)[0], "t": to_float(t, config.format)}
        program = choices[int(rng.integers(len(choices)))]
        found.append(one_pass(config, columns, x, program, tensors, pair(), pair()))
    return found


def directed_passes(rng: np.random.Generator, config: OEIConfig) -> list[Pass]:
    """Return passes whose cycles meet where random ones seldom do.

    - The first sub-tensor has no elements, so that its columns are complete later than its
      conversion. They are the identity of min, which differs from what the memory held before.
    - The row that reserves its space first is finished last. It holds back the space of all others,
      which is freed row by row, while a row that needs all of the space waits.
    - The elements of the last two rows have the same bank, so that they are still on their way when
      the last step ends.

    All numbers are near 1, because a sum that is NaN would hide an element that it lacks.
    """
    c = config
    size, width = c.rows, c.columns

    some = codes(rng, 8192, c.format)
    magnitude = np.abs(to_float(some, c.format))
    some = some[(magnitude > 0.1) & (magnitude < 10)]

    def values(rows: Sequence[int]) -> Column:
        return list(zip(rows, rng.choice(some, len(rows)).tolist(), strict=True))

    late: list[Column] = [values([n]) if n >= width else [] for n in range(size)]
    held: list[Column] = [[] for _ in range(size)]
    rows = (c.subs - 2) * width
    if rows > 0:
        # All rows before row ``rows`` leave in the step in which its elements arrive.
        held[0] = values([rows - 1, *range(min(rows - 1, c.capacity - 1))])
        held[rows + width] = values([rows] * c.capacity)
    # At least one whole beat for each row; an element may occur several times.
    often = max(c.lanes * c.lanes // size, 1)
    tail: list[Column] = [
        values([size - 2, size - 1] * often) if n % c.lanes == 0 else [] for n in range(size)
    ]
    found: list[Pass] = []
    for columns, pair in ((late, ("min", "add")), (held, ("add", "mul")), (tail, ("add", "mul"))):
        x, t, s = (rng.choice(some, n) for n in (size, size, 1))
        tensors = {"s": to_float(s, c.format)[0], "t": to_float(t, c.format)}
        found.append(one_pass(c, columns, x, programs(c)[0], tensors, pair, pair))
    return found


def counts_of(columns: Sequence[Column], config: OEIConfig) -> np.ndarray:
    """Return the number of elements of each row that the buffer can have, as (groups, lanes)."""
    rows = [row for column in columns for row, _ in column]
    return np.bincount(rows, minlength=config.rows).reshape(-1, config.lanes)


def commands(passes: Sequence[Pass], config: OEIConfig) -> list[dict[str, Any]]:
    """Return the commands of passes as items of the pipeline's stream."""
    c = config
    nothing = {
        "group": 0,
        "counts": [0] * c.lanes,
        "values": [0] * c.lanes,
        "size": 0,
        "first": {"plus": 0, "times": 0},
        "second": {"plus": 0, "times": 0},
        "ewise": command_items([ProgramWrite(address=0, instruction=SparseInstruction(op="load"))])[
            0
        ],
    }
    items: list[dict[str, Any]] = []

    def put(kind: Kind, **fields: Any) -> None:
        items.append(nothing | {"kind": kind.value} | fields)

    def semiring(pair: tuple[str, str]) -> dict[str, int]:
        return {"plus": PLUS.index(pair[0]), "times": TIMES.index(pair[1])}

    for each in passes:
        for group, row in enumerate(counts_of(each.columns, c).tolist()):
            put(Kind.INDEX, group=group, counts=row)
        for group, part in enumerate(each.x.reshape(-1, c.lanes).tolist()):
            put(Kind.VECTOR, group=group, values=part)
        for item in command_items(each.before):
            put(Kind.EWISE, ewise=item)
        body = command_items([ProgramStep(address=each.body, present=np.zeros(c.lanes, bool))])[0]
        semirings = {"first": semiring(each.first), "second": semiring(each.second)}
        put(Kind.RUN, size=each.size, ewise=body, **semirings)
        for item in command_items(each.after):
            put(Kind.EWISE, ewise=item)
    return items


def stacked(items: Sequence[Any]) -> Any:
    """Return items of a stream as a payload of arrays."""
    if isinstance(items[0], dict):
        return {name: stacked([item[name] for item in items]) for name in items[0]}
    return np.array(items, np.uint64)


def csc_payload(beats: Sequence[CSCBeats], config: OEIConfig) -> dict[str, Any]:
    """Return the beats of matrices as the payload of a stream of columns."""
    joined = {
        name: np.concatenate([getattr(each, name) for each in beats])
        for name in ("values", "rows", "present", "last")
    }
    return {
        "lanes": {
            "value": joined["values"].astype(code_dtype(config.number)),
            "row": joined["rows"],
            "present": joined["present"].astype(np.uint8),
            "last": joined["last"].astype(np.uint8),
        }
    }


def beats_of(passes: Sequence[Pass], config: OEIConfig) -> dict[str, Any]:
    """Return the beats of the matrices of passes as the payload of the pipeline's stream."""
    return csc_payload([csc_beats(p.columns, config.lanes, config.columns) for p in passes], config)
