"""The command ``network``: time and bottleneck of every layer of a whole network."""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from vitruvian.cli import write_json
from vitruvian.commands.options import add_chip, add_json
from vitruvian.common.errors import UserError
from vitruvian.common.files import output_path
from vitruvian.common.progress import Progress
from vitruvian.common.table import open_console, print_table
from vitruvian.common.validate import one_of
from vitruvian.wings.ascend.davinci import tell_compiling

if TYPE_CHECKING:
    from vitruvian.sim.networks import Network
    from vitruvian.sim.networks.run import NetworkTimes

_DESCRIPTION = """\
Simulate every layer of a network on DaVinci cores, and print its time, its class by
the component-based roofline, and the shares of the classes. The networks mobilenet_v3,
resnet50, inception_v3 and bert_base are built in; the package onnx reads others."""

_EPILOG = """\
Example: vitruvian network mobilenet_v3 --out mobilenet.svg
         vitruvian network mobilenet_v3 --step baseline
         vitruvian network model.onnx --skip-unknown --json layers.json"""


def register(name: str, commands: Any) -> None:
    """Add the command ``network`` to the parser."""
    parser = commands.add_parser(name, description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument(
        "network",
        metavar="NETWORK",
        help="Simulate this built-in network, or the model of an ONNX file (.onnx).",
    )
    add_chip(parser)
    parser.add_argument(
        "--step",
        default="optimised",
        metavar="STEP",
        help="Take these versions of the layers: baseline (the unoptimised operators of the case "
        "studies) or optimised (default: %(default)s).",
    )
    parser.add_argument(
        "--skip-unknown",
        action="store_true",
        help="Leave out the layers that no kernel computes, and name and count them.",
    )
    parser.add_argument(
        "--out",
        type=output_path(".svg", ".png", ".json"),
        metavar="FILE",
        help="Write a chart of the shares of the classes to this file (.svg, .png, or .json for "
        "its data).",
    )
    add_json(parser, "the layers and shares")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vitruvian.sim.davinci import load_chip
    from vitruvian.sim.networks.baseline import unfused
    from vitruvian.sim.networks.run import STEPS, UnknownLayers, run

    one_of("--step", options.step, STEPS)
    try:
        chip, network = load_chip(options.chip), _network(options.network)
        tell_compiling()
        # The baseline has operators that the optimised network fuses: the bar counts its layers.
        shown = unfused(network) if options.step == "baseline" else network
        total = len(shown.layers)
        with Progress(network.name, total, bar=True, counts=True) as progress:
            times = run(
                network,
                chip,
                step=options.step,
                skip_unknown=options.skip_unknown,
                tell=lambda layer: progress.advance(),
            )
    except UnknownLayers as error:
        raise UserError(f"{error} (--skip-unknown)") from None
    except ValueError as error:
        raise UserError(str(error)) from None
    _show(options, times)
    return 0


def _network(name: str) -> "Network":
    from vitruvian.sim.networks import NETWORKS
    from vitruvian.sim.networks.onnx_file import read_onnx

    if name.endswith(".onnx"):
        return read_onnx(name)
    one_of("NETWORK", name, [*NETWORKS, "FILE.onnx"])
    return NETWORKS[name]()


def _show(options: argparse.Namespace, times: "NetworkTimes") -> None:
    from vitruvian.common.charts import write_figure
    from vitruvian.sim.roofline.plot import draw_distribution

    console = open_console(sys.stderr if options.json == "-" else sys.stdout)
    print_table(
        console,
        ("layer", "kind", "runs", "µs", "share", "highest U", "highest R", "class"),
        _rows(times),
        title=escape(_title(times)),
        note="equal layers share a row; without the launches of the kernels",
        right=("runs", "µs", "share", "highest U", "highest R"),
    )
    for kind, count in sorted(times.skipped.items()):
        layers = "layer" if count == 1 else "layers"
        text = f"skipped: {count} {layers} of kind {kind}, which no kernel computes"
        console.print(text, markup=False)
    # A layer may stand for several runs of the same shape.
    runs = sum(x.layer.times for x in times.layers if x.analysis)
    console.print(f"{runs} runs of layers take {times.seconds * 1e6:,.1f} µs", markup=False)
    shares = {
        "share of layers": times.distribution(),
        "share of time": times.distribution(by_time=True),
    }
    # The paper's classes do not know the shared buses of our chips.
    more = {"share of layers without buses": times.distribution(buses=False)}
    for title, each in (shares | more).items():
        shown = ", ".join(f"{bound.value} {x * 100:.2f} %" for bound, x in each.items())
        console.print(f"{title}: {shown}", markup=False)
    if options.out:
        write_figure(
            options.out, lambda figure: draw_distribution(figure.subplots(), shares, _title(times))
        )
        console.print(options.out, markup=False)
    if options.json:
        write_json(options.json, times.as_dict())


def _title(times: "NetworkTimes") -> str:
    baseline = ", baseline" if times.step == "baseline" else ""
    return f"{times.network.title} on {times.chip}{baseline}"


def _rows(times: "NetworkTimes") -> list[tuple[str, ...]]:
    """Return a row for each shape of a layer, in the order of its first layer."""
    groups: dict[Any, list[Any]] = {}
    for each in times.layers:
        # Equal shapes take equal times, whatever their place in the network.
        groups.setdefault(each.layer.shape, []).append(each)
    rows: list[tuple[str, ...]] = []
    for group in groups.values():
        layer, analysis = group[0].layer, group[0].analysis
        runs = sum(x.layer.times for x in group)
        cells = layer.name, layer.kind, str(runs)
        if analysis is None:
            rows.append((*cells, "–", "–", "–", "–", "skipped"))
            continue
        seconds = sum(x.seconds for x in group)
        rows.append(
            (
                *cells,
                f"{seconds * 1e6:,.2f}",
                f"{seconds / times.seconds * 100:.1f} %",
                f"{analysis.highest.utilisation * 100:.1f} %",
                f"{analysis.longest.time_ratio * 100:.1f} %",
                analysis.label,
            )
        )
    return rows
