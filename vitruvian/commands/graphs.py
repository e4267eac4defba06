"""Graph problems on a SIMD² unit: what ``run`` does with them."""

import argparse
import math
import re
import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from vitruvian.cli import write_json
from vitruvian.commands.options import at_least, lanes
from vitruvian.errors import UserError
from vitruvian.files import output_path
from vitruvian.progress import Progress

if TYPE_CHECKING:
    from vitruvian.sim.matrix_unit import Unit
    from vitruvian.sim.simd2.graph import Core, Counts, Graph, Machine

__all__ = ["add_options", "run"]

_SIZES = (1024, 2048, 4096, 8192, 16384)
_SHOWN = 12  # vertices of a route that are printed


def add_options(parser: argparse.ArgumentParser) -> dict[str, tuple[str, ...]]:
    """Add the options of graph problems, and return for each what it may come with.

    That is ``paths``, the problems but knn with a graph; ``knn``; or ``model``, with --model.
    """
    group = parser.add_argument_group("graph problems")
    belongs: dict[str, tuple[str, ...]] = {}

    def add(name: str, families: str, **settings: Any) -> None:
        belongs[group.add_argument(name, **settings).dest] = tuple(families.split())

    add(
        "--graph",
        "paths knn",
        metavar="FILE",
        help="Read the graph from this file: Matrix Market (.mtx, also .gz or .bz2), or a list of "
        "edges (.csv, .tsv, .edges, .txt). For knn, each row of the matrix is a point.",
    )
    add(
        "--model",
        "model",
        action="store_true",
        help="Print the modelled cycles for 1,024 to 16,384 vertices instead of solving a graph.",
    )
    add(
        "--backend",
        "paths knn",
        default="golden",
        help="Choose who computes: golden, or rtl, the compiled RTL (default: golden).",
    )
    add(
        "--algorithm",
        "paths model",
        help="Choose bellman-ford, leyzorek or floyd-warshall (default: floyd-warshall above 128 "
        "vertices, else leyzorek).",
    )
    add(
        "--no-check",
        "paths",
        action="store_true",
        help="Run as many iterations as any graph needs, even if nothing changes any more.",
    )
    add(
        "--inputs",
        "paths knn model",
        help="Round the operands to fp16 or fp32 (default: fp16 where that loses nothing, and on "
        "the compiled RTL; else fp32).",
    )
    add(
        "--neighbours",
        "knn",
        type=at_least(1),
        default=5,
        metavar="N",
        help="Find so many neighbours of each point (default: 5).",
    )
    add(
        "--unit",
        "paths knn model",
        type=lanes,
        metavar="MxNxK",
        help="Give the unit's rows, columns and terms a cycle (default: 4x4x4).",
    )
    add(
        "--duplicates",
        "paths",
        help="Choose what counts where an edge is given again: sum, min, max or first (default: "
        "such a graph is refused).",
    )
    add(
        "--undirected",
        "paths",
        action="store_true",
        help="Let every edge of a list lead both ways (default: only for mst).",
    )
    add(
        "--weight",
        "paths",
        metavar="NAME",
        help="Take the weights of a list of edges from the column of this name; none gives every "
        "edge the weight 1 (default: weight, or the third column).",
    )
    add(
        "--no-edge",
        "paths",
        type=_real,
        metavar="X",
        help="Take this entry of a matrix with all entries for no edge, such as 0 (default: "
        "infinity).",
    )
    add(
        "--route",
        "paths",
        nargs=2,
        action="append",
        default=[],
        metavar=("FROM", "TO"),
        help="Print the value and the route between two vertices; may be given again.",
    )
    add(
        "--output",
        "paths knn",
        type=output_path(".npy", ".csv", ".mtx"),
        metavar="FILE",
        help="Write the values of all pairs to this file (.npy, .csv or .mtx); for knn, the "
        "neighbours and the squares of their distances.",
    )
    return belongs


def _real(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, not {text!r}") from None


def run(options: argparse.Namespace) -> int:
    """Solve a graph problem, or print the model's cycles."""
    from vitruvian.sim.simd2.graph import Core, Machine

    _check(options)
    console = Console(
        file=sys.stderr if options.json == "-" else sys.stdout,
        width=None if sys.stdout.isatty() else 120,
        highlight=False,
    )
    try:
        core = Core(unit=_unit(options.unit))
        machine = Machine(core.unit, options.backend)
        found = _model(options, core, console) if options.model else None
        if found is None:
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                found = _solve(options, core, machine, console)
            found["warnings"] = [_as_options(str(warning.message)) for warning in heard]
            for text in found["warnings"]:
                print(f"warning: {text}", file=sys.stderr)
    except (ValueError, MemoryError) as error:
        raise UserError(f"{options.problem}: {_as_options(str(error))}") from None
    if options.json:
        write_json(options.json, found)
    return 0


def _check(options: argparse.Namespace) -> None:
    """Refuse what can be refused before the graph is read."""
    from vitruvian.sim.simd2.graph import ALGORITHMS, BACKENDS, DUPLICATES, FORMATS, is_edge_file

    for name, value, allowed in (
        ("--algorithm", options.algorithm, ALGORITHMS),
        ("--inputs", options.inputs, tuple(FORMATS)),
        ("--backend", options.backend, tuple(BACKENDS)),
        ("--duplicates", options.duplicates, DUPLICATES),
    ):
        if value is not None and value not in allowed:
            raise UserError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
    if options.no_check and options.algorithm == "floyd-warshall":
        raise UserError("--no-check must come with bellman-ford or leyzorek, not floyd-warshall")
    if options.backend == "rtl":
        options.inputs = options.inputs or "fp16"
    if options.graph is None and not options.model:
        raise UserError("run must have one of --graph FILE and --model")
    for name in ("weight", "undirected"):
        if getattr(options, name) and not is_edge_file(Path(str(options.graph))):
            raise UserError(f"--{name} must come with a list of edges, not with {options.graph}")


def _as_options(text: str) -> str:
    """Return a message of the library with the parameters as options of the command line."""
    names = "inputs|duplicates|no_edge|weight|backend"
    text = re.sub(
        rf"\b({names})='?([\w.+-]+)'?",
        lambda found: f"--{found[1].replace('_', '-')} {found[2].replace('None', 'none')}",
        text,
    )
    return re.sub(rf"\b({names})(?= must)", lambda found: f"--{found[1].replace('_', '-')}", text)


def _unit(lanes: dict[str, int] | None) -> "Unit":
    from vitruvian.sim.matrix_unit import Unit

    lanes = lanes or {"m": 4, "n": 4, "k": 4}
    return Unit(m=lanes["m"], n=lanes["n"], k=lanes["k"])


def _solve(options, core: "Core", machine: "Machine", console: Console) -> dict[str, Any]:
    with Progress(options.problem, bar=False, counts=False) as progress:
        done = 0

        def watch(counts: "Counts") -> None:
            nonlocal done
            done += counts.mmo
            progress.update(note=f"{done:,} mmo")

        machine.watch = watch
        compute = _neighbours if options.problem == "knn" else _paths
        title, rows, figures = compute(options, core, machine)
    console.print(title, style="bold", markup=False)
    table = Table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for name, text in rows:
        table.add_row(name, text)
    console.print(table)
    return {"problem": options.problem, "graph": options.graph, **figures}


def _read(options) -> "Graph":
    from vitruvian.sim.simd2.graph import PROBLEMS, read_graph

    weight = options.weight or "weight"
    reading: dict[str, Any] = {"duplicates": options.duplicates, "no_edge": options.no_edge}
    reading["weight"] = None if weight.lower() == "none" else weight
    if options.undirected:
        reading["directed"] = False
    return read_graph(PROBLEMS[options.problem], options.graph, **reading)


def _ends(options, graph: "Graph") -> list[tuple[Any, Any]]:
    """Return the vertices that --route names; a wrong one is found before the work."""
    if not options.route:
        return []
    named = {str(name): name for name in graph.names}
    for name in (name for pair in options.route for name in pair):
        if name not in named:
            first = ", ".join(list(named)[:4]) + (", …" if len(named) > 4 else "")
            raise UserError(f"--route must name vertices ({first}), not {name!r}")
    return [(named[start], named[end]) for start, end in options.route]


def _paths(options, core: "Core", machine: "Machine"):
    from vitruvian.sim.simd2.graph import solve, write_paths

    graph = _read(options)
    ends = _ends(options, graph)
    found = solve(
        options.problem,
        graph,
        algorithm=options.algorithm,
        check=not options.no_check,
        inputs=options.inputs,
        machine=machine,
    )
    op = found.problem.op
    checks = not options.no_check and found.algorithm != "floyd-warshall"
    checked = found.iterations * len(graph) ** 2 if checks else 0
    cost, more = _cost(core, op, found, checked)
    ended = " (nothing changed any more)" if found.converged else ""
    chosen = found.algorithm + ("" if options.algorithm else " (by default)")
    kind = "directed" if graph.directed else "undirected"
    rows = [
        ("graph", f"{len(graph):,} vertices, {graph.size:,} edges, {kind}"),
        *(("edges", note) for note in graph.notes),
        ("algorithm", f"{chosen}, {op.mnemonic}, {found.inputs} operands"),
        ("iterations", f"{found.iterations:,}{ended}"),
        *cost,
    ]
    figures: dict[str, Any] = {
        "vertices": len(graph),
        "edges": graph.size,
        "directed": graph.directed,
        "notes": list(graph.notes),
        "algorithm": found.algorithm,
        "operation": op.mnemonic,
        "inputs": found.inputs,
        "iterations": found.iterations,
        "converged": found.converged,
        **more,
    }
    if op.mnemonic == "orand":
        pairs = int((found.values != 0).sum())
        rows.append(("reachable pairs", f"{pairs:,} of {len(graph) ** 2:,}"))
        figures["reachable_pairs"] = pairs
    if options.problem == "mst":
        tree = [list(edge) for edge in found.tree]
        first = ", ".join("–".join(map(str, edge)) for edge in tree[:_SHOWN])
        rows += [
            ("tree", f"{len(tree):,} edges of {found.tree_weight:g} in all"),
            ("its edges", first + (" …" if len(tree) > _SHOWN else "")),
        ]
        figures["tree"] = {"edges": tree, "weight": found.tree_weight}
    if found.problem.extreme:
        figures["extreme"] = None
        if found.extreme is None:
            rows.append((found.problem.called, "none: no vertex reaches another"))
        else:
            source, target, value = found.extreme
            route = found.route(source, target) or []
            rows += [
                (found.problem.called, f"{source} to {target}: {value:g}"),
                ("its route", _shown([str(name) for name in route])),
            ]
            figures["extreme"] = {
                "called": found.problem.called,
                "source": source,
                "target": target,
                "value": value if math.isfinite(value) else None,
                "route": route,
            }
    if ends:
        figures["routes"] = []
    for source, target in ends:
        value, route = found.value(source, target), found.route(source, target)
        text = f"{value:g}: {_shown([str(name) for name in route])}" if route else "no path"
        rows.append((f"{source} to {target}", text))
        given = {"source": source, "target": target, "value": value, "route": route}
        figures["routes"].append(given)
    if options.output:
        write_paths(found, options.output)
        rows.append(("values", options.output))
    return f"{options.problem}: {found.problem.title}", rows, figures


def _neighbours(options, core: "Core", machine: "Machine"):
    from vitruvian.golden.simd2 import Op
    from vitruvian.sim.simd2.graph import nearest_neighbours, write_neighbours

    found = nearest_neighbours(
        options.graph, options.neighbours, inputs=options.inputs, machine=machine
    )
    cost, more = _cost(core, Op.ADDNORM, found, 0)
    i = int(found.squares[:, -1].argmax())
    distance = math.sqrt(found.squares[i, -1])
    points = ", ".join(str(v + 1) for v in found.indices[i])
    rows = [
        ("points", f"{len(found.indices):,}, {options.neighbours} neighbours of each"),
        ("operands", found.inputs),
        *cost,
        ("loneliest point", f"{i + 1}: {points}; the last one at a distance of {distance:g}"),
    ]
    if options.output:
        write_neighbours(found, options.output)
        rows.append(("neighbours", options.output))
    figures = {
        "points": len(found.indices),
        "inputs": found.inputs,
        **more,
        "neighbours": (found.indices + 1).tolist(),
        "squares": found.squares.astype(float).tolist(),
    }
    return "knn: nearest neighbours, by addnorm", rows, figures


def _cost(core: "Core", op, found, checked: int):
    """Instructions and cycles, as rows and as figures."""
    counts = found.counts
    vector = core.vector_cycles(op, counts, found.inputs, checked=checked)
    unit = f"{core.unit.m}×{core.unit.n}×{core.unit.k}"
    figures: dict[str, Any] = {"instructions": asdict(counts), "cycles": None}
    if core.builds(op, found.inputs):
        cycles = core.cycles(op, counts, found.inputs, checked=checked)
        text = f"{cycles.overlapped:,} on a {unit} unit"
        figures["cycles"] = {
            "overlapped": cycles.overlapped,
            "serial": cycles.serial,
            **asdict(cycles),
        }
    else:
        operands = f"{op.mnemonic} on {found.inputs.upper()} operands"
        text = f"none: no {unit} unit with {operands} is built"
    rows = [
        (
            "instructions",
            f"{counts.mmo:,} mmo, {counts.loads:,} loads, {counts.stores:,} stores"
            + (f", {counts.fills:,} fills" if counts.fills else ""),
        ),
        ("cycles (model)", f"{text}; {vector.overlapped:,} on {core.lanes} vector lanes"),
    ]
    if found.clocks:
        rows.append(("RTL cycles", f"{found.clocks:,}"))
    return rows, {
        **figures,
        "vector_cycles": vector.overlapped,
        "rtl_cycles": found.clocks or None,
    }


def _shown(names: list[str]) -> str:
    if len(names) > _SHOWN:
        names = [*names[: _SHOWN // 2], f"… ({len(names) - _SHOWN} more) …", *names[-_SHOWN // 2 :]]
    return " → ".join(names)


def _model(options, core: "Core", console: Console) -> dict[str, Any]:
    from vitruvian.sim.simd2.graph import ALGORITHMS, PROBLEMS, estimate

    problem, inputs = PROBLEMS[options.problem], options.inputs or "fp16"
    unit = f"{core.unit.m}×{core.unit.n}×{core.unit.k}"
    console.print(
        f"{problem.name}: {unit} unit beside {core.lanes} vector lanes, {inputs} operands; "
        "as many iterations as any graph needs",
        style="bold",
        markup=False,
    )
    table = Table()
    table.add_column("vertices", justify="right")
    table.add_column("algorithm", no_wrap=True)
    for name in ("iterations", "mmo", "SIMD² cycles", "not overlapped", "vector cycles", "ratio"):
        table.add_column(name, justify="right", no_wrap=True)
    rows = []
    for vertices in _SIZES:
        for algorithm in ALGORITHMS if options.algorithm is None else (options.algorithm,):
            row = estimate(problem.op, vertices, algorithm, inputs=inputs, core=core)
            table.add_row(
                f"{vertices:,}",
                algorithm,
                f"{row.iterations:,}",
                f"{row.counts.mmo:.3g}",
                f"{row.simd2.overlapped:.3g}",
                f"{row.simd2.serial:.3g}",
                f"{row.vector.overlapped:.3g}",
                f"{row.ratio:.2f}",
            )
            rows.append({**asdict(row), "ratio": row.ratio})
    console.print(table)
    assumptions = core.assumptions()
    sources = Table("not counted", "value", "source")
    for item in assumptions:
        sources.add_row(item.name, item.value, item.source)
    console.print(sources)
    figures = {"problem": problem.name, "inputs": inputs, "unit": unit, "rows": rows}
    return {**figures, "assumptions": [asdict(item) for item in assumptions]}
