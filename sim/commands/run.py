"""``run``: graph problems on a SIMD² unit, from a Matrix Market file; DaVinci kernels."""

import argparse
import math
import sys
import warnings
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from sim.cli import UserError, write_json

from . import davinci
from .options import GRAPH_PROBLEMS, add_json, at_least, lanes

if TYPE_CHECKING:
    from sim.kernels.engine import Unit
    from sim.kernels.graph import Core, Counts, Machine

__all__ = ["register"]

_SIZES = (1024, 2048, 4096, 8192, 16384)
_SHOWN = 12  # vertices of a route that are printed


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "run", help="a graph problem on a SIMD² unit, from a .mtx file; a kernel on DaVinci cores"
    )
    names = ", ".join(GRAPH_PROBLEMS)
    parser.add_argument("problem", metavar="KERNEL", help=f"{names}; or see `python -m sim list`")
    parser.add_argument("--graph", metavar="FILE", help="Matrix Market file; of knn, a point a row")
    parser.add_argument("--backend", default="golden", help="who computes: golden or rtl")
    parser.add_argument(
        "--algorithm", default="leyzorek", help="bellman-ford, leyzorek or floyd-warshall"
    )
    parser.add_argument(
        "--no-check", action="store_true", help="all iterations, even if nothing changes"
    )
    parser.add_argument("--inputs", help="operands in fp16 or fp32; what loses nothing if absent")
    parser.add_argument("--neighbours", type=at_least(1), default=5, help="of knn")
    parser.add_argument("--unit", type=lanes, metavar="MxNxK", help="terms a cycle (4x4x4)")
    parser.add_argument(
        "--model", action="store_true", help="cycles for 1k to 16k vertices instead of a graph"
    )
    add_json(parser, "the figures")
    davinci.add_options(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    return (_graph if options.problem in GRAPH_PROBLEMS else davinci.run)(options)


def _graph(options: argparse.Namespace) -> int:
    from sim.kernels.graph import ALGORITHMS, BACKENDS, FORMATS, Core, Machine

    for name, value, allowed in (
        ("--algorithm", options.algorithm, ALGORITHMS),
        ("--inputs", options.inputs or "fp16", tuple(FORMATS)),
        ("--backend", options.backend, tuple(BACKENDS)),
    ):
        if value not in allowed:
            raise UserError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
    if options.backend == "rtl":
        options.inputs = options.inputs or "fp16"
    if bool(options.graph) == options.model:
        raise UserError("run must have one of --graph FILE and --model")
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
            found["warnings"] = [str(warning.message) for warning in heard]
            for text in found["warnings"]:
                print(f"warning: {text}", file=sys.stderr)
    except (ValueError, MemoryError) as error:
        raise UserError(f"{options.problem}: {error}") from None
    if options.json:
        write_json(options.json, found)
    return 0


def _unit(lanes: dict[str, int] | None) -> "Unit":
    from sim.kernels.engine import Unit

    lanes = lanes or {"m": 4, "n": 4, "k": 4}
    return Unit(m=lanes["m"], n=lanes["n"], k=lanes["k"])


def _solve(options, core: "Core", machine: "Machine", console: Console) -> dict[str, Any]:
    columns = TextColumn("{task.description}"), TextColumn("{task.fields[done]}")
    screen = Console(stderr=True)
    every = *columns, TimeElapsedColumn()
    with Progress(*every, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        line = bar.add_task(options.problem, total=None, done="")
        done = 0

        def watch(counts: "Counts") -> None:
            nonlocal done
            done += counts.mmo
            bar.update(line, done=f"{done:,} mmo")

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


def _paths(options, core: "Core", machine: "Machine"):
    from sim.kernels.graph import solve

    found = solve(
        options.problem,
        options.graph,
        algorithm=options.algorithm,
        check=not options.no_check,
        inputs=options.inputs,
        machine=machine,
    )
    graph, op = found.graph, found.problem.op
    checks = not options.no_check and options.algorithm != "floyd-warshall"
    checked = found.iterations * len(graph) ** 2 if checks else 0
    cost, more = _cost(core, op, found, checked)
    ended = " (nothing changed any more)" if found.converged else ""
    kind = "directed" if graph.directed else "undirected"
    rows = [
        ("graph", f"{len(graph):,} vertices, {graph.size:,} edges, {kind}"),
        ("algorithm", f"{found.algorithm}, {op.mnemonic}, {found.inputs} operands"),
        ("iterations", f"{found.iterations:,}{ended}"),
        *cost,
    ]
    figures: dict[str, Any] = {
        "vertices": len(graph),
        "edges": graph.size,
        "directed": graph.directed,
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
        tree = [[str(name) for name in edge] for edge in found.tree]
        first = ", ".join("–".join(edge) for edge in tree[:_SHOWN])
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
    return f"{options.problem}: {found.problem.title}", rows, figures


def _neighbours(options, core: "Core", machine: "Machine"):
    from golden.simd2 import Op
    from sim.kernels.graph import nearest_neighbours

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
    cycles = core.cycles(op, counts, found.inputs, checked=checked)
    vector = core.vector_cycles(op, counts, found.inputs, checked=checked)
    unit = f"{core.unit.m}×{core.unit.n}×{core.unit.k}"
    rows = [
        (
            "instructions",
            f"{counts.mmo:,} mmo, {counts.loads:,} loads, {counts.stores:,} stores"
            + (f", {counts.fills:,} fills" if counts.fills else ""),
        ),
        (
            "cycles (model)",
            f"{cycles.overlapped:,} on a {unit} unit; {vector.overlapped:,} on {core.lanes} "
            "vector lanes",
        ),
    ]
    if found.clocks:
        rows.append(("RTL cycles", f"{found.clocks:,}"))
    figures = {
        "instructions": asdict(counts),
        "cycles": {
            "overlapped": cycles.overlapped,
            "serial": cycles.serial,
            **asdict(cycles),
        },
        "vector_cycles": vector.overlapped,
        "rtl_cycles": found.clocks or None,
    }
    return rows, figures


def _shown(names: list[str]) -> str:
    if len(names) > _SHOWN:
        names = [*names[: _SHOWN // 2], f"… ({len(names) - _SHOWN} more) …", *names[-_SHOWN // 2 :]]
    return " → ".join(names)


def _model(options, core: "Core", console: Console) -> dict[str, Any]:
    from sim.kernels.graph import ALGORITHMS, PROBLEMS, estimate

    if options.problem not in PROBLEMS:
        raise UserError(f"--model must be of one of {', '.join(PROBLEMS)}, not {options.problem}")
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
        for algorithm in ALGORITHMS:
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
