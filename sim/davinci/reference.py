"""Pages of the site that are written from the simulator itself; flows.pages.site adds them."""

from collections.abc import Callable
from typing import Any

from vitruvian.sim.davinci.program.reference import builder_page
from vitruvian.sim.davinci.report.counters import TABLES, meaning

_COUNTERS = """# Counters

This page is written from `sim/davinci/report/counters.py` when the site is built.

`--csv FOLDER` of `vitruvian kernel`, `trace` and `cce` writes these tables, and
`sim.davinci.report.counting.write_counters(report, folder)` does so in Python.
`sim.davinci.report.counters.read_counters(path)` reads them, and tables of real profiling.

Names and units are those of msprof (op_summary.csv) and msprof op (the other tables). A file has
only the columns that the chip has values for. op_summary.csv has one row for the whole run, with
times as means over the cores; the other tables have a row for each core. KB are 1024 bytes, GB are
10⁹ bytes. `aic` stands for cores with a Cube, `aiv` for vector cores. On a chip whose cores have
all units, op_summary.csv has names without either. N/A stands for a value that cores of the row's
kind do not have.

What the simulator does not model is left out: caches (icache_miss_rate, L2), bank conflicts, and
reads of the L0 buffers.
"""


def counters_page() -> str:
    """Return the page of the tables of counters in Markdown."""
    parts = [_COUNTERS]
    for file, columns in TABLES.items():
        rows = [f"| `{column}` | {meaning(column).replace('|', '/')} |" for column in columns]
        parts.append("\n".join([f"## {file}\n", "| column | meaning |", "|---|---|", *rows, ""]))
    return "\n".join(parts)


#: The pages by file name.
PAGES: dict[str, Callable[[], str]] = {"builder.md": builder_page, "counters.md": counters_page}


def on_files(files: Any, config: Any) -> Any:
    """Add the pages to the files of the site; the hook of mkdocs calls this function."""
    from mkdocs.structure.files import File

    for name, page in PAGES.items():
        files.append(File.generated(config, f"api/{name}", content=page()))
    return files
