"""The work of the command ``graph``: solve a graph problem, or print the model's cycles."""

import argparse
import math
import re
import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitruvian.cli import write_json
from vitruvian.common.errors import UserError
from vitruvian.common.progress import Progress
from vitruvian.common.table import open_console, print_table
from vitruvian.common.validate import one_of

if TYPE_CHECKING:
    from rich.console import Console

    from vitruvian.golden.simd2 import Op
    from vitruvian.sim.matrix_unit import Unit
    from vitruvian.sim.simd2.graph import Core, Counts, Graph, Machine, Neighbours, Paths

#: Lines of a table: a name and a text.
_Rows = list[tuple[str, str]]

#: Title, lines and figures of a result.
_Answer = tuple[str, _Rows, dict[str, Any]]

#: Graphs of the model, by their vertices.
_SIZES = (1024, 2048, 4096, 8192, 16384)


def run(options: argparse.Namespace) -> int:
    """Solve a graph problem, or print the cycles of the model.

    Raises
    ------
    UserError
        If an option or the graph is wrong, or the problem does not fit into memory.
    """
    from vitruvian.sim.simd2.graph import Core, Machine

    _check(options)
    console = open_console(sys.stderr if options.json == "-" else sys.stdout)
    try:
        core = Core(unit=_unit(options.unit))
        machine = Machine(core.unit, options.backend)
        figures = _model(options, core, console) if options.model else None
        if figures is None:
            # Recorded, so that each warning is one line even if Python is told to hide warnings.
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                figures = _solve(options, core, machine, console)
            figures["warnings"] = [_as_options(str(warning.message)) for warning in caught]
            for text in figures["warnings"]:
                print(f"warning: {text}", file=sys.stderr)
    except (ValueError, MemoryError) as error:
        raise UserError(f"{options.problem}: {_as_options(str(error))}") from None
    if options.json:
        write_json(options.json, figures)
    return 0


def _check(options: argparse.Namespace) -> None:
    """Raise UserError for options that are wrong for every graph."""
    from vitruvian.sim.simd2.graph import ALGORITHMS, BACKENDS, DUPLICATES, FORMATS, is_edge_file

    for name, value, allowed in (
        ("--algorithm", options.algorithm, ALGORITHMS),
        ("--input", options.input, tuple(FORMATS)),
        ("--backend", options.backend, tuple(BACKENDS)),
        ("--duplicates", options.duplicates, DUPLICATES),
    ):
        if value is not None:
            one_of(name, value, allowed)
    if options.all_iterations and options.algorithm == "floyd-warshall":
        raise UserError(
            "--all-iterations must come with bellman-ford or leyzorek, not floyd-warshall"
        )
    if options.backend == "rtl":
        options.input = options.input or "fp16"
    if options.graph is None and not options.model:
        raise UserError("graph must have one of --graph FILE and --model")
    for name in ("weight", "undirected"):
        if getattr(options, name) and not is_edge_file(Path(str(options.graph))):
            raise UserError(f"--{name} must come with a list of edges, not with {options.graph}")


def _as_options(text: str) -> str:
    """Return a message of the library with its parameters written as command-line options."""
    names = "inputs|duplicates|no_edge|weight|backend"
    # First parameters with a value, as in no_edge=0, then those that a sentence begins with.
    text = re.sub(
        rf"\b({names})='?([\w.+-]+)'?",
        lambda match: f"{_option(match[1])} {match[2].replace('None', 'none')}",
        text,
    )
    return re.sub(rf"\b({names})(?= must)", lambda match: _option(match[1]), text)


def _option(parameter: str) -> str:
    """Return the option that sets a parameter of the library."""
    return "--input" if parameter == "inputs" else f"--{parameter.replace('_', '-')}"


def _unit(lanes: dict[str, int] | None) -> "Unit":
    from vitruvian.sim.matrix_unit import Unit

    lanes = lanes or {"m": 4, "n": 4, "k": 4}
    return Unit(m=lanes["m"], n=lanes["n"], k=lanes["k"])


def _solve(
    options: argparse.Namespace, core: "Core", machine: "Machine", console: "Console"
) -> dict[str, Any]:
    """Solve a problem, print its table, and return its figures."""
    with Progress(options.problem, bar=False, counts=False) as progress:
        done = 0

        def watch(counts: "Counts") -> None:
            # The machine reports each step of an algorithm by itself.
            nonlocal done
            done += counts.mmo
            progress.update(note=f"{done:,} mmo")

        machine.watch = watch
        compute = _neighbours if options.problem == "knn" else _paths
        title, rows, figures = compute(options, core, machine)
    console.print(title, style="bold", markup=False)
    print_table(console, None, rows)
    return {"problem": options.problem, "graph": options.graph, **figures}


def _read(options: argparse.Namespace) -> "Graph":
    """Return the graph that the options name."""
    from vitruvian.sim.simd2.graph import PROBLEMS, read_graph

    weight = options.weight or "weight"
    reading: dict[str, Any] = {"duplicates": options.duplicates, "no_edge": options.no_edge}
    reading["weight"] = None if weight.lower() == "none" else weight
    if options.undirected:
        reading["directed"] = False
    return read_graph(PROBLEMS[options.problem], options.graph, **reading)


def _ends(options: argparse.Namespace, graph: "Graph") -> list[tuple[Any, Any]]:
    """Return the vertices that --route names; an unknown one raises UserError."""
    if not options.route:
        return []
    # Vertices may be numbers in the file, but an option is text.
    named = {str(name): name for name in graph.names}
    for name in (name for pair in options.route for name in pair):
        if name not in named:
            first = ", ".join(list(named)[:4]) + (", …" if len(named) > 4 else "")
            raise UserError(f"--route must name vertices ({first}), not {name!r}")
    return [(named[start], named[end]) for start, end in options.route]


def _paths(options: argparse.Namespace, core: "Core", machine: "Machine") -> _Answer:
    """Solve a path problem; return the title, the lines and the figures of the result."""
    from vitruvian.sim.simd2.graph import solve, write_paths
    from vitruvian.sim.simd2.graph.paths import arrows

    graph = _read(options)
    ends = _ends(options, graph)
    paths = solve(
        options.problem,
        graph,
        algorithm=options.algorithm,
        check=not options.all_iterations,
        inputs=options.input,
        machine=machine,
    )
    op = paths.problem.op
    # A test for convergence compares all n² values once an iteration; Floyd-Warshall has none.
    checks = not options.all_iterations and paths.algorithm != "floyd-warshall"
    checked = paths.iterations * len(graph) ** 2 if checks else 0
    cost, cost_figures = _cost(core, op, paths, checked)
    ended = " (nothing changed any more)" if paths.converged else ""
    algorithm = paths.algorithm + ("" if options.algorithm else " (by default)")
    kind = "directed" if graph.directed else "undirected"
    rows = [
        ("graph", f"{len(graph):,} vertices, {graph.size:,} edges, {kind}"),
        *(("edges", note) for note in graph.notes),
        ("algorithm", f"{algorithm}, {op.mnemonic}, {paths.inputs} operands"),
        ("iterations", f"{paths.iterations:,}{ended}"),
        *cost,
    ]
    figures: dict[str, Any] = {
        "vertices": len(graph),
        "edges": graph.size,
        "directed": graph.directed,
        "notes": list(graph.notes),
        "algorithm": paths.algorithm,
        "operation": op.mnemonic,
        "inputs": paths.inputs,
        "iterations": paths.iterations,
        "converged": paths.converged,
        **cost_figures,
    }
    result_rows, result_figures = paths.describe()
    rows += result_rows
    figures |= result_figures
    routes: list[dict[str, Any]] = []
    if ends:
        figures["routes"] = routes
    for source, target in ends:
        value, route = paths.value(source, target), paths.route(source, target)
        rows.append(
            (f"{source} to {target}", f"{value:g}: {arrows(route)}" if route else "no path")
        )
        routes.append({"source": source, "target": target, "value": value, "route": route})
    if options.out:
        write_paths(paths, options.out)
        rows.append(("values", options.out))
    return f"{options.problem}: {paths.problem.title}", rows, figures


def _neighbours(options: argparse.Namespace, core: "Core", machine: "Machine") -> _Answer:
    """Find nearest neighbours; return the title, the lines and the figures of the result."""
    from vitruvian.golden.simd2 import Op
    from vitruvian.sim.simd2.graph import nearest_neighbours, write_neighbours

    neighbours = nearest_neighbours(
        options.graph, options.neighbours, inputs=options.input, machine=machine
    )
    indices, squares = neighbours.indices, neighbours.squares
    cost, cost_figures = _cost(core, Op.ADDNORM, neighbours, 0)
    # The last column is the farthest of the k neighbours.
    i = int(squares[:, -1].argmax())
    distance = math.sqrt(squares[i, -1])
    # Matrix Market counts from 1.
    points = ", ".join(str(v + 1) for v in indices[i])
    rows = [
        ("points", f"{len(indices):,}, {options.neighbours} neighbours of each"),
        ("operands", neighbours.inputs),
        *cost,
        ("most isolated point", f"{i + 1}: {points}; the last one at a distance of {distance:g}"),
    ]
    if options.out:
        write_neighbours(neighbours, options.out)
        rows.append(("neighbours", options.out))
    figures = {
        "points": len(indices),
        "inputs": neighbours.inputs,
        **cost_figures,
        "neighbours": (indices + 1).tolist(),
        "squares": squares.astype(float).tolist(),
    }
    return "knn: nearest neighbours, by addnorm", rows, figures


def _cost(
    core: "Core", op: "Op", result: "Paths | Neighbours", checked: int
) -> tuple[_Rows, dict[str, Any]]:
    """Return the instructions and cycles of a result, as lines and as figures."""
    counts, inputs = result.counts, result.inputs
    vector = core.vector_cycles(op, counts, inputs, checked=checked)
    unit = f"{core.unit.m}×{core.unit.n}×{core.unit.k}"
    figures: dict[str, Any] = {"instructions": asdict(counts), "cycles": None}
    if core.builds(op, inputs):
        cycles = core.cycles(op, counts, inputs, checked=checked)
        text = f"{cycles.overlapped:,} on a {unit} unit"
        figures["cycles"] = {
            "overlapped": cycles.overlapped,
            "serial": cycles.serial,
            **asdict(cycles),
        }
    else:
        text = f"none: no {unit} unit with {op.mnemonic} on {inputs.upper()} operands exists"
    rows = [
        (
            "instructions",
            f"{counts.mmo:,} mmo, {counts.loads:,} loads, {counts.stores:,} stores"
            + (f", {counts.fills:,} fills" if counts.fills else ""),
        ),
        ("cycles (model)", f"{text}; {vector.overlapped:,} on {core.lanes} vector lanes"),
    ]
    if result.measured_cycles:
        rows.append(("RTL cycles", f"{result.measured_cycles:,}"))
    return rows, {
        **figures,
        "vector_cycles": vector.overlapped,
        "rtl_cycles": result.measured_cycles or None,
    }


def _model(options: argparse.Namespace, core: "Core", console: "Console") -> dict[str, Any]:
    """Print the modelled cycles of a path problem, and return them."""
    from vitruvian.sim.simd2.graph import ALGORITHMS, PROBLEMS, estimate

    problem, inputs = PROBLEMS[options.problem], options.input or "fp16"
    unit = f"{core.unit.m}×{core.unit.n}×{core.unit.k}"
    console.print(
        f"{problem.name}: {unit} unit beside {core.lanes} vector lanes, {inputs} operands; "
        "as many iterations as the worst graph needs",
        style="bold",
        markup=False,
    )
    header = ("vertices", "algorithm", "iterations", "mmo", "SIMD² cycles", "not overlapped")
    header += ("vector cycles", "ratio")
    lines: list[tuple[str, ...]] = []
    rows: list[dict[str, Any]] = []
    for vertices in _SIZES:
        for algorithm in ALGORITHMS if options.algorithm is None else (options.algorithm,):
            row = estimate(problem.op, vertices, algorithm, inputs=inputs, core=core)
            lines.append(
                (
                    f"{vertices:,}",
                    algorithm,
                    f"{row.iterations:,}",
                    f"{row.counts.mmo:.3g}",
                    f"{row.simd2.overlapped:.3g}",
                    f"{row.simd2.serial:.3g}",
                    f"{row.vector.overlapped:.3g}",
                    f"{row.ratio:.2f}",
                )
            )
            rows.append({**asdict(row), "ratio": row.ratio})
    print_table(console, header, lines, right={*header} - {"algorithm"})
    assumptions = core.assumptions()
    sources = [(item.name, item.value, item.source) for item in assumptions]
    print_table(console, ("not counted", "value", "source"), sources, right=())
    figures = {"problem": problem.name, "inputs": inputs, "unit": unit, "rows": rows}
    return {**figures, "assumptions": [asdict(item) for item in assumptions]}
