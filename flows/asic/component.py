r"""Measure area and delay of a component that is not a registered unit.

The command is ``python -m vitruvian.flows.asic.component EXPRESSION``. It serves for experiments at
the shell. The expression is Python, and it can use the names of every module that ``--from`` lists
(by default ``hdl.fp`` with its modules, and ``golden.fp``)::

    python -m vitruvian.flows.asic.component \
        'DotProduct(spec=PRESETS["a100"].spec("fp16", k=8), pipeline=2)'
    python -m vitruvian.flows.asic.component --macs 8 --from my.module 'MyUnit(k=8)'
"""

import argparse
import importlib
import pkgutil
import time
from pathlib import Path
from typing import Any

from vitruvian.flows.asic import liberty as cells
from vitruvian.flows.asic import sta
from vitruvian.flows.asic.cells import nangate45
from vitruvian.flows.asic.synth import SynthesisRecipe, synthesize
from vitruvian.hdl.elaborate import to_rtlil


def names(modules: list[str]) -> dict[str, Any]:
    """Return the public names of ``modules`` and of their submodules."""
    public: dict[str, Any] = {}
    for name in modules:
        module = importlib.import_module(name)
        children = [
            importlib.import_module(child.name)
            for child in pkgutil.walk_packages(getattr(module, "__path__", []), f"{name}.")
        ]
        # The package comes last, so that its own names replace equal names of its modules.
        for part in (*children, module):
            public |= {k: v for k, v in vars(part).items() if not k.startswith("_")}
    return public


def main() -> None:
    """Synthesise the components of the command line and print one line per delay target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("expression", nargs="+")
    parser.add_argument("--from", dest="modules", action="append")
    parser.add_argument("--macs", type=int, default=0, help="also print the area per MAC")
    parser.add_argument("--target", type=int, action="append", help="delay target, ps")
    parser.add_argument("--liberty", type=Path)
    parser.add_argument("--booth", action="store_true")
    parser.add_argument("--path", action="store_true", help="print the longest path cell by cell")
    arguments = parser.parse_args()
    liberty = arguments.liberty or nangate45.fetch()
    library = cells.load(liberty)
    scope = names(arguments.modules or ["vitruvian.golden.fp", "vitruvian.hdl.fp"])
    for expression in arguments.expression:
        begin = time.monotonic()
        # The expression comes from the user's own shell, so it needs no protection.
        component = eval(expression, scope)
        results = synthesize(
            to_rtlil(component),
            liberty=liberty,
            targets_ps=arguments.target or [10000, 500],
            recipe=SynthesisRecipe(booth=arguments.booth),
        )
        print(f"{expression}  ({time.monotonic() - begin:.1f} s)")
        for target, mapped in results.items():
            per = f" {mapped.area_um2 / arguments.macs:8.1f} um2/MAC" if arguments.macs else ""
            print(
                f"  -D {target:5d}: {mapped.area_um2:9.1f} um2{per}"
                f"  ({mapped.sequential_area_um2:.0f} registers) {mapped.cell_count} cells"
                f"  ABC {mapped.abc_delay_ps} ps (logic only), {mapped.peak_mib:.0f} MiB"
            )
            timing = sta.analyse(mapped.netlist, library)
            for kind, path in timing.paths.items():
                print(f"     {kind:20s} {path.delay_ps:7.0f} ps  {path.start} -> {path.end}")
            if arguments.path and timing.worst:
                for step in timing.worst.steps:
                    print(
                        f"       {step.arrival_ps:7.1f} +{step.delay_ps:6.1f} {step.edge:4s}"
                        f" {step.kind:10s} {step.through:8s} {step.net}"
                    )


if __name__ == "__main__":
    main()
