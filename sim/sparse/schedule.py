"""The schedule of a run on SIDA, derived from the application's dataflow graph.

Operators are gathered into *sweeps*. A sweep passes a matrix, or only vectors, through the chip
once, and runs all operators that it can: an operator belongs to the earliest sweep in which each
element of its inputs is there in time. An element of an operator's result can be used in the same
sweep. What needs a whole vector waits for the next sweep: the input of an output-stationary
product, and all that depends on a reduction or on the result of an input-stationary product. A
sweep contains one product, or the two products of a pair that ``golden.sparse.dependency`` allows.

References
----------
Zhang 2024: §4.2.1 (fused element-wise operations), §4.3.1 (sub-tensor dependency), §4.3.2 (pairs).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from vitruvian.common.validate import check_int
from vitruvian.golden.sparse.dependency import Pair, pairs
from vitruvian.golden.sparse.graph import Graph, inputs, outputs
from vitruvian.sim.sparse.operators import Operator, Shape, View, final_shapes, unrolled

#: Iterations that are unrolled at most. Pairs repeat after two iterations at the latest, and the
#: first and last two may differ from those between.
_UNROLLED = 8


@dataclass(frozen=True)
class Gathered:
    """The input of an output-stationary product: the elements of rows with nonzeros are read.

    Attributes
    ----------
    view : View
    features : int
        Values of each element.
    """

    view: View
    features: int


@dataclass(frozen=True)
class ScheduledWork:
    """An operator of the accelerator without reuse between operators.

    Attributes
    ----------
    product : Gathered or None
        The matrix and the input, if the operator is a product.
    read, written : int
        Values of vectors that are read and written; a product's input is not counted.
    operations : int
        Operations of processing elements; of a product, for each nonzero.
    """

    product: Gathered | None
    read: int
    written: int
    operations: int


@dataclass(frozen=True)
class Sweep:
    """One pass of a matrix, or of vectors only, through the chip.

    Attributes
    ----------
    kind : {"oei", "stream", "product", "vectors"}
        Two products of the same matrix; two products, of the matrix and of its transpose; one
        product; none.
    view : View or None
        The matrix, as the output-stationary product reads it.
    os_features, is_features : int
        Values of each element of the two products' vectors; 0 if there is no such product.
    read, written : int
        Values of vectors that are read for operators, and written. The input of an
        output-stationary product and the result of an input-stationary one are not counted.
    operations : int
        Operations of the e-wise core.
    touched : int
        Values that the e-wise core reads from and writes to the buffer.
    """

    kind: str
    view: View | None
    os_features: int
    is_features: int
    read: int
    written: int
    operations: int
    touched: int


@dataclass(frozen=True)
class ScheduleSection:
    """The sweeps from the first product of an iteration up to the next such product.

    A first product that is always the second one of a pass begins a section with that pass.

    Attributes
    ----------
    sweeps : tuple of Sweep
    read, written : int
        Values of vectors that enter the section and leave it, each counted once.
    gathered : tuple of Gathered
        Vectors that enter the section and that only output-stationary products read.
    """

    sweeps: tuple[Sweep, ...]
    read: int
    written: int
    gathered: tuple[Gathered, ...]


@dataclass(frozen=True)
class SparseSchedule:
    """A run on SIDA, and the operators of each iteration for an accelerator without reuse.

    Attributes
    ----------
    name : str
    iterations : int
    sections : tuple of (ScheduleSection, int)
        Sections in the order in which they first occur, and how often each runs.
    work : tuple of ScheduledWork
        Operators of an iteration.
    confirmations : int
        How often the graph's nodes ``confirm`` run; ``sections`` contain theirs.
    confirm_work : tuple of ScheduledWork
        Operators of a confirmation.
    single_work, single_confirm_work : tuple of ScheduledWork
        The same if each element-wise node is an operator, and none is joined to an expression.
    """

    name: str
    iterations: int
    sections: tuple[tuple[ScheduleSection, int], ...]
    work: tuple[ScheduledWork, ...]
    confirmations: int = 0
    confirm_work: tuple[ScheduledWork, ...] = ()
    single_work: tuple[ScheduledWork, ...] = ()
    single_confirm_work: tuple[ScheduledWork, ...] = ()

    def counted_work(self, *, joined: bool = True) -> Iterator[tuple[ScheduledWork, int]]:
        """Yield every operator, with joined or single nodes, and how often it runs."""
        for each in self.work if joined else self.single_work:
            yield each, self.iterations
        for each in self.confirm_work if joined else self.single_confirm_work:
            yield each, self.confirmations


def schedule(
    graph: Graph,
    shapes: Mapping[str, Shape],
    matrices: Mapping[str, Shape],
    iterations: int,
    *,
    limit: int | None = None,
    confirmations: int = 0,
) -> SparseSchedule:
    """Return the schedule of a run.

    Parameters
    ----------
    shapes : dict of str to tuple of int
        Shapes of the tensors in ``graph.given``.
    matrices : dict of str to (int, int)
        Rows and columns of the matrices.
    iterations : int
        Iterations of the run, at least 0. The setup is left out.
    limit : int, optional
        Largest number of iterations, by default ``iterations``. Before it is reached, the machine
        does not know that a run is going to end, and starts a pair whose second product it does not
        need.
    confirmations : int
        How often the graph's nodes ``confirm`` run.

    Returns
    -------
    SparseSchedule
        A long run is computed from shorter ones, as sections repeat.
    """
    check_int("iterations", iterations, 0)
    check_int("confirmations", confirmations, 0)
    fused = {pair.position: pair for pair in pairs(graph)}

    def sections(count: int) -> Counter[ScheduleSection]:
        more = limit is not None and iterations < limit
        return _sections(graph, shapes, matrices, count, fused, more)

    # Two iterations are added at a time, so that the parity must be that of the run.
    direct = min(iterations, _UNROLLED - iterations % 2)
    counts = sections(direct)
    if iterations > direct:
        # Two more iterations add the sections of the steady state.
        steady = counts - sections(direct - 2)
        for section, count in steady.items():
            counts[section] += count * ((iterations - direct) // 2)
    confirm = single_confirm = ()
    if confirmations:
        # A confirmation has its own products, and none of them shares a pass with an iteration's.
        again, known = _confirmation(graph, shapes, matrices)
        for section, count in _sections(again, known, matrices, 1, {}, False).items():
            counts[section] += count * confirmations
        confirm = _works(again, known, matrices)
        single_confirm = _works(again, known, matrices, joined=False)
    return SparseSchedule(
        name=graph.name,
        iterations=iterations,
        sections=tuple(counts.items()),
        work=_works(graph, shapes, matrices),
        confirmations=confirmations,
        confirm_work=confirm,
        single_work=_works(graph, shapes, matrices, joined=False),
        single_confirm_work=single_confirm,
    )


def _confirmation(
    graph: Graph, shapes: Mapping[str, Shape], matrices: Mapping[str, Shape]
) -> tuple[Graph, dict[str, Shape]]:
    """Return a confirmation as a graph with one iteration, and the shapes of its tensors.

    Its results are the tensors that the next iteration reads.
    """
    known = final_shapes(graph, shapes, matrices)
    written = {name for node in graph.confirm for name in outputs(node)}
    needed: dict[str, None] = {}
    fresh: set[str] = set()
    for node in graph.body:
        needed |= dict.fromkeys(n for n in inputs(node) if n in written - fresh)
        fresh.update(outputs(node))
    again = Graph(
        name=graph.name,
        given=tuple(known),
        matrices=graph.matrices,
        body=graph.confirm,
        results=tuple(needed),
    )
    return again, known


def _works(
    graph: Graph,
    shapes: Mapping[str, Shape],
    matrices: Mapping[str, Shape],
    *,
    joined: bool = True,
) -> tuple[ScheduledWork, ...]:
    """Return the operators of an iteration for the accelerator without reuse."""
    operators, values, _ = unrolled(graph, shapes, matrices, 1, joined=joined)
    return tuple(_work(each, values) for each in operators if each.view or each.swept)


def _work(operator: Operator, values: Mapping[str, int]) -> ScheduledWork:
    product = None
    if operator.view:
        product = Gathered(operator.view, operator.operations)
    read = 0 if product else sum(values[name] for name in operator.vectors)
    return ScheduledWork(product, read, operator.output_values, operator.operations)


def _sections(
    graph: Graph,
    shapes: Mapping[str, Shape],
    matrices: Mapping[str, Shape],
    iterations: int,
    fused: Mapping[int, Pair],
    more: bool,
) -> Counter[ScheduleSection]:
    """Return the sections of a run of a few iterations, in their order."""
    positions = [position for position, _ in graph.products()]
    products = [(i, position) for i in range(iterations) for position in positions]
    seconds: dict[tuple[int, int], str] = {}  # the second products of pairs, with the kind
    firsts: dict[tuple[int, int], str] = {}
    begun, place = 0, 0
    while place < len(products):
        iteration, position = products[place]
        pair = fused.get(position)
        if pair is None:
            place += 1
            continue
        # A pair across the end of the run: its second product belongs to an iteration that may not
        # come.
        last = pair.crosses and iteration == iterations - 1
        if pair.kind is None or (last and not more):
            place += 1
            continue
        firsts[products[place]] = pair.kind
        seconds[iteration + pair.crosses, pair.next_position] = pair.kind
        if last:
            begun = pair.next_position + 1
        # The second product of the pair is done in the same pass.
        place += 2
    operators, values, results = unrolled(graph, shapes, matrices, iterations, begun=begun)
    levels = _levels(operators, firsts, seconds)
    starts: list[int] = []
    for operator, level in zip(operators, levels, strict=True):
        place = operator.iteration, operator.position
        if operator.view and place not in seconds:
            # A last product that shares its pass with the first one of the next iteration
            joins = place in firsts and (operator.iteration + 1, positions[0]) in seconds
            joins = joins and operator.position == positions[-1] != positions[0]
            if operator.position == positions[0] or joins:
                starts.append(level)
    return _gather(operators, levels, values, results, firsts, seconds, starts)


def _levels(
    operators: list[Operator],
    firsts: Mapping[tuple[int, int], str],
    seconds: Mapping[tuple[int, int], str],
) -> list[int]:
    """Return the sweep of each operator; −1 for one that needs no sweep."""
    floors: dict[int, int] = {}  # sweeps before which the first product of a pair must not start
    while True:
        levels: list[int] = []
        there: dict[str, int] = {}  # first sweep in which each element is there in time
        complete: dict[str, int] = {}  # first sweep before which the whole tensor is there
        free, pair, late = 0, -1, None
        for number, operator in enumerate(operators):
            place = operator.iteration, operator.position
            need = max((complete.get(name, 0) for name in operator.whole), default=0)
            if operator.view and place in seconds:
                level = levels[pair]
                if there.get(operator.vectors[0], 0) > level:
                    # The second product would read what a later sweep makes. The pair's first
                    # product moves to that sweep, and all levels are computed anew.
                    late = there[operator.vectors[0]]
                    break
                there[operator.output] = complete[operator.output] = level + 1
            elif operator.view:
                need = max(need, complete.get(operator.vectors[0], 0))
                level = max(need, free, floors.get(number, 0))
                free = level + 1
                if place in firsts:
                    pair = number
                # Element by element in the same sweep, as a whole after it.
                there[operator.output], complete[operator.output] = level, level + 1
            else:
                level = max([need, *(there.get(name, 0) for name in operator.vectors)])
                after = level + 1 if operator.swept else level
                # A reduction is there after the last element only.
                there[operator.output] = after if operator.reduces else level
                complete[operator.output] = after
                if not operator.swept:
                    level = -1
            levels.append(level)
        if late is None:
            return levels
        floors[pair] = late


def _gather(
    operators: list[Operator],
    levels: list[int],
    values: Mapping[str, int],
    results: set[str],
    firsts: Mapping[tuple[int, int], str],
    seconds: Mapping[tuple[int, int], str],
    starts: list[int],
) -> Counter[ScheduleSection]:
    """Return the sections from the operators of each sweep."""
    made: dict[str, tuple[int, bool]] = {}  # sweep that produces a vector, and if it is IS
    # Results of the run are used after every sweep.
    last_use: dict[str, int] = dict.fromkeys(results, len(operators) + 1)
    by_level: dict[int, list[Operator]] = {}
    for operator, level in zip(operators, levels, strict=True):
        if level < 0:
            continue
        by_level.setdefault(level, []).append(operator)
        stationary = operator.view is not None and (
            (operator.iteration, operator.position) in seconds
        )
        if operator.output_values:
            made[operator.output] = level, stationary
        for name in operator.vectors:
            last_use[name] = max(last_use.get(name, -1), level)
    bounds = [0, *(level for level in starts if level > 0), max(by_level, default=-1) + 1]
    counts: Counter[ScheduleSection] = Counter()
    for begin, end in pairwise(bounds):
        sweeps: list[Sweep] = []
        entering: dict[str, bool] = {}  # with the answer if only OS products read it
        inputs: dict[str, Gathered] = {}
        leaving: set[str] = set()
        for level in range(begin, end):
            group = by_level.get(level, [])
            if not group:
                continue
            sweeps.append(_sweep(group, level, values, made, last_use, firsts, seconds))
            for operator in group:
                first = operator.view is not None and (
                    (operator.iteration, operator.position) not in seconds
                )
                for name in operator.vectors:
                    if made.get(name, (-1, False))[0] < begin:
                        # True only as long as all readers are output-stationary products.
                        entering[name] = entering.get(name, True) and first
                        if operator.view and first:
                            inputs[name] = Gathered(operator.view, operator.operations)
                if operator.output_values and last_use.get(operator.output, -1) >= end:
                    leaving.add(operator.output)
        section = ScheduleSection(
            sweeps=tuple(sweeps),
            read=sum(values[name] for name, gathered in entering.items() if not gathered),
            written=sum(values[name] for name in leaving),
            gathered=tuple(inputs[name] for name, gathered in entering.items() if gathered),
        )
        if sweeps:
            counts[section] += 1
    return counts


def _sweep(
    group: list[Operator],
    level: int,
    values: Mapping[str, int],
    made: Mapping[str, tuple[int, bool]],
    last_use: Mapping[str, int],
    firsts: Mapping[tuple[int, int], str],
    seconds: Mapping[tuple[int, int], str],
) -> Sweep:
    """Return the sweep of some operators."""
    kind, view, os_features, is_features = "vectors", None, 0, 0
    read: set[str] = set()
    written: set[str] = set()
    operations = touched = 0
    for operator in group:
        place = operator.iteration, operator.position
        first = operator.view is not None and place not in seconds
        if first:
            view, os_features = operator.view, operator.operations
            kind = firsts.get(place, "product")
        elif operator.view:
            is_features = operator.operations
        else:
            operations += operator.operations
            touched += sum(values[name] for name in operator.vectors) + operator.output_values
        if not first:  # the input of an OS product is loaded by the rows
            read.update(n for n in operator.vectors if made.get(n, (-1, False))[0] < level)
        leaves = operator.output_values and last_use.get(operator.output, -1) > level
        # The IS core writes its own results, which the lowering counts.
        if leaves and not made[operator.output][1]:
            written.add(operator.output)
    return Sweep(
        kind=kind,
        view=view,
        os_features=os_features,
        is_features=is_features,
        read=sum(values[name] for name in read),
        written=sum(values[name] for name in written),
        operations=operations,
        touched=touched,
    )
