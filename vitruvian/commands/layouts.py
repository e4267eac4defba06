"""The command ``layout``, apart from its options."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from vitruvian.common.errors import UserError
from vitruvian.common.extras import check
from vitruvian.common.files import output_path
from vitruvian.common.progress import Progress
from vitruvian.flows.asic import cells, report
from vitruvian.flows.asic.layout import measure
from vitruvian.flows.asic.layout import report as layout_report
from vitruvian.flows.asic.measure import TARGETS_PS
from vitruvian.flows.asic.power.measure import CYCLES
from vitruvian.flows.asic.synth import SynthesisRecipe
from vitruvian.hdl.catalogue.unit import Variant


def run(
    options: argparse.Namespace,
    selected: Sequence[Variant],
    conditions: Callable[[argparse.Namespace], tuple[cells.CellLibrary, SynthesisRecipe]],
    store: Callable[[Any, argparse.Namespace], None],
) -> int:
    """Lay out one variant, print its figures, and return 1 if a check found something.

    Parameters
    ----------
    conditions : callable
        Function that reads library and recipe from the options.
    store : callable
        Function that writes the result as JSON if the options ask for it.

    Raises
    ------
    UserError
        If the options do not select one variant and one delay target, or if a library is missing.
    """
    if len(selected) != 1:
        raise UserError(
            f"options must select one configuration of one unit for layout, not {len(selected)}"
        )
    targets = options.delay_target or TARGETS_PS[-1:]
    if len(targets) != 1:
        raise UserError(f"--delay-target must be given once for layout, not {len(targets)} times")
    if options.out == "-":
        raise UserError("--out must be a folder for layout, not standard output")
    if options.power and options.liberty != "nangate45":
        raise UserError(
            "--power must come with the library nangate45, whose registers have no reset, "
            f"not {options.liberty}"
        )
    for module in ("klayout", "scipy", "pyosys"):
        check(module, "layout")
    library, recipe = conditions(options)
    settings = measure.LayoutSettings(
        library=library,
        recipe=recipe,
        target_ps=targets[0],
        power_cycles=CYCLES if options.power else 0,
        utilisation=options.utilisation / 100,
        block_um=options.block,
        cache=not options.no_cache,
    )
    folder = Path(options.out)
    try:
        output_path(folder=True)(str(folder))
    except argparse.ArgumentTypeError as error:
        raise UserError(f"folder {error}") from None
    folder.mkdir(parents=True, exist_ok=True)
    with Progress() as progress:
        summary = measure.measure_layout(selected[0], settings, folder, progress=progress)
    report.show(
        layout_report.table(summary),
        title=f"Layout of {selected[0].unit.name} {selected[0].label}, library {library.name}",
        note=layout_report.note(summary),
    )
    for path in summary.files:
        print(path)
    store(
        {"library": {"name": library.name, "sha256": library.sha256}, **summary.as_json()}, options
    )
    return 0 if summary.clean else 1
