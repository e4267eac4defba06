"""The counters of a simulated run, as rows and files with the columns of msprof."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from vitruvian.common.files import write_all
from vitruvian.sim.davinci.chip.model import ATTO, GM, CoreKind
from vitruvian.sim.davinci.isa.instruction import Kind, Unit
from vitruvian.sim.davinci.report.busy import busy_times
from vitruvian.sim.davinci.report.counters import (
    BANDWIDTHS,
    CUBE_DTYPES,
    FLOATS,
    NOT_AVAILABLE,
    TABLES,
    TRANSFERS,
    UNIT_NAMES,
    VECTOR_DTYPES,
    Row,
    amount_column,
    usage_column,
)
from vitruvian.sim.davinci.report.report import Report
from vitruvian.sim.davinci.report.work import moved_bytes


@dataclass
class _Core:
    """The counters of one core, from which the rows of all files are made."""

    kind: CoreKind
    index: int
    time: int = 0  # attoseconds
    busy: Counter[Unit] = field(default_factory=Counter)  # attoseconds
    count: Counter[Unit] = field(default_factory=Counter)  # instructions
    busy_by_dtype: Counter[tuple[Unit, str]] = field(default_factory=Counter)
    count_by_dtype: Counter[tuple[Unit, str]] = field(default_factory=Counter)
    operations: Counter[tuple[Unit, str]] = field(default_factory=Counter)
    nbytes: Counter[str] = field(default_factory=Counter)

    @property
    def prefix(self) -> str:
        return "aic" if Unit.M in self.kind.units else "aiv"

    def ratio(self, atto: int) -> float:
        return round(atto / self.time, 6) if self.time else 0.0

    def rate(self, nbytes: int) -> float:
        return round(nbytes / (self.time / ATTO) / 1e9, 6) if self.time else 0.0

    def fops(self, unit: Unit) -> int:
        return sum(n for (u, dtype), n in self.operations.items() if u == unit and dtype in FLOATS)


def _cores(report: Report) -> list[_Core]:
    lowered, times = report.lowered, report.times
    took = busy_times(lowered, times)
    cores, number = [], 0
    for c, stream in enumerate(report.streams):
        core = _Core(report.chip.kind(stream.kind), stream.index)
        part = slice(int(lowered.first[c]), int(lowered.first[c + 1]))
        if lowered.first[c] < lowered.first[c + 1]:
            # The first instruction is issued when the core starts.
            began = int(times.issued[part][0])
            core.time = max(int(np.max(times.drained[part])) - began, 0)
        for instr in stream.instructions:
            i, number = number, number + 1
            if instr.kind != Kind.NORMAL or times.end[i] < 0:
                continue
            unit, work, atto = Unit(instr.unit), instr.work, int(took[i])
            core.busy[unit] += atto
            core.count[unit] += 1
            if unit in (Unit.M, Unit.V):
                core.busy_by_dtype[unit, work.precision] += atto
                core.count_by_dtype[unit, work.precision] += 1
                core.operations[unit, work.precision] += work.operations
            if nbytes := moved_bytes(instr):
                core.nbytes[instr.path] += nbytes
        cores.append(core)
    return cores


def counters(report: Report) -> dict[str, list[Row]]:
    """Return the rows of every file of ``TABLES``, by the file's name.

    op_summary.csv has one row, and each other file has a row for each core. A row has values for
    the columns of its kind of core only.
    """
    cores = _cores(report)
    files: dict[str, list[Row]] = {"op_summary.csv": [_summary(report, cores)]}
    for file in list(TABLES)[1:]:
        files[file] = []
    clock = float(report.chip.clock_hz)
    for core in cores:
        p, kind = core.prefix, core.kind
        head: Row = {
            "block_id": core.index // kind.per_group,
            "sub_block_id": f"{kind.name}{core.index % kind.per_group}",
            f"{p}_time(us)": _micro(core.time),
            f"{p}_total_cycles": round(core.time / ATTO * clock),
        }
        files["PipeUtilization.csv"].append(head | _pipes(core))
        files["ArithmeticUtilization.csv"].append(head | _arithmetic(core))
        files["Memory.csv"].append(head | _memory(report, core))
        files["MemoryL0.csv"].append(head | _bandwidths(core, "MemoryL0.csv"))
    for file, rows in files.items():
        files[file] = [{k: v for k, v in row.items() if k in TABLES[file]} for row in rows]
    return files


def _micro(atto: float) -> float:
    return round(atto / ATTO * 1e6, 6)


def _pipes(core: _Core) -> Row:
    row: Row = {}
    for unit in core.kind.units:
        name = f"{core.prefix}_{UNIT_NAMES[unit][0]}"
        row[f"{name}_time(us)"] = _micro(core.busy[unit])
        row[f"{name}_ratio"] = core.ratio(core.busy[unit])
    return row


def _arithmetic(core: _Core) -> Row:
    row: Row = {}
    p, busy, count = core.prefix, core.busy_by_dtype, core.count_by_dtype
    if Unit.M in core.kind.units:
        row["aic_cube_ratio"] = core.ratio(core.busy[Unit.M])
        for dtype in CUBE_DTYPES:
            row[f"aic_cube_{dtype}_ratio"] = core.ratio(busy[Unit.M, dtype])
        floats = sum(n for (u, d), n in count.items() if u == Unit.M and d in FLOATS)
        row["aic_cube_fops"] = core.fops(Unit.M)
        row["aic_cube_total_instr_number"] = core.count[Unit.M]
        row["aic_cube_fp_instr_number"] = floats
        row["aic_cube_int_instr_number"] = core.count[Unit.M] - floats
    if Unit.V in core.kind.units:
        row[f"{p}_vec_ratio"] = core.ratio(core.busy[Unit.V])
        named = {d: busy[Unit.V, d] for d in VECTOR_DTYPES}
        # The time of all other dtypes, so that the columns add up to the busy time of the unit.
        named["misc"] = core.busy[Unit.V] - sum(named.values())
        row |= {f"{p}_vec_{d}_ratio": core.ratio(atto) for d, atto in named.items()}
        row[f"{p}_vec_fops"] = core.fops(Unit.V)
    return row


def _memory(report: Report, core: _Core) -> Row:
    p, kind = core.prefix, core.kind
    row: Row = {}
    if "UB" in kind.buffers:
        row[f"{p}_ub_to_gm_bw(GB/s)"] = core.rate(core.nbytes["UB->GM"])
        row[f"{p}_gm_to_ub_bw(GB/s)"] = core.rate(core.nbytes["GM->UB"])
    row |= _bandwidths(core, "Memory.csv")
    for unit in (Unit.MTE1, Unit.MTE2, Unit.MTE3):
        if unit in kind.units:
            row[f"{p}_{UNIT_NAMES[unit][0]}_instructions"] = core.count[unit]
            row[f"{p}_{UNIT_NAMES[unit][0]}_ratio"] = core.ratio(core.busy[unit])
    row["read_main_memory_datas(KB)"] = _moved(core, GM, 0) / 1024
    row["write_main_memory_datas(KB)"] = _moved(core, GM, 1) / 1024
    for path in TRANSFERS:
        route = report.chip.routes.get(path)
        ends = {m for m in path.split("->") if m != GM}
        if route is None or not ends <= set(kind.buffers):
            continue
        row[amount_column(path)] = core.nbytes[path] / 1024
        # What the path could have moved while the core ran.
        full = float(route.rate.bytes_per_s) * core.time / ATTO
        row[usage_column(path)] = round(100 * core.nbytes[path] / full, 6) if full else 0.0
    return row


def _moved(core: _Core, memory: str, end: int) -> int:
    """Return the bytes that leave a memory (``end`` 0) or enter it (``end`` 1)."""
    return sum(n for path, n in core.nbytes.items() if path.split("->")[end] == memory)


def _bandwidths(core: _Core, file: str) -> Row:
    row: Row = {}
    for (memory, direction), (of, name, _) in BANDWIDTHS.items():
        if of == file and (memory == GM or memory in core.kind.buffers):
            moved = _moved(core, memory, 0 if direction == "read" else 1)
            row[f"{core.prefix}_{name}(GB/s)"] = core.rate(moved)
    return row


def _summary(report: Report, cores: Sequence[_Core]) -> Row:
    groups = {p: [core for core in cores if core.prefix == p] for p in ("aic", "aiv")}
    aic, aiv = groups["aic"], groups["aiv"]
    row: Row = {
        "Op Name": report.name,
        "OP Type": report.name,
        "Task Type": "MIX_AIC" if aic and aiv else "AI_VECTOR_CORE" if aiv else "AI_CORE",
        "Task Start Time(us)": 0.0,
        "Task Duration(us)": round(report.total_s * 1e6, 6),
        "Block Dim": len(aic) or len(aiv),
        "Mix Block Dim": len(aiv) if aic else 0,
    }
    clock = float(report.chip.clock_hz)
    # On chips whose cores have all units, msprof's columns have no prefix.
    coupled = len(report.chip.kinds) == 1
    for p, group in groups.items():
        if not group:
            continue
        time = sum(core.time for core in group)
        start = "" if coupled else f"{p}_"
        # Times are means over the cores, cycles are sums, as in msprof.
        row["aicore_time(us)" if p == "aic" else "aiv_time(us)"] = _micro(time / len(group))
        row[f"{start}total_cycles"] = round(time / ATTO * clock)
        for unit in group[0].kind.units:
            busy, name = sum(core.busy[unit] for core in group), f"{start}{UNIT_NAMES[unit][1]}"
            row[f"{name}_time(us)"] = _micro(busy / len(group))
            row[f"{name}_ratio"] = round(busy / time, 6) if time else 0.0
        for unit, name in ((Unit.M, "cube_fops"), (Unit.V, "vector_fops")):
            if unit in group[0].kind.units:
                row[f"{start}{name}"] = sum(core.fops(unit) for core in group)
    ratios = [row.get("mac_ratio"), row.get("vec_ratio")]
    largest = max((float(r) for r in ratios if r is not None), default=0.0)
    if largest:
        row["memory_bound"] = round(float(row.get("mte2_ratio") or 0) / largest, 6)
    return row


def write_counters(report: Report, folder: str | Path) -> list[Path]:
    """Write the files of ``TABLES`` to a folder, all of them or none, and return their paths.

    A file has only the columns for which some row has a value; it is not written if no row has one
    (MemoryL0.csv for a chip without L0 buffers).

    Raises
    ------
    OSError
        If a file cannot be written. No file is left behind then.
    """
    texts = {}
    for file, rows in counters(report).items():
        columns = [c for c in TABLES[file] if any(row.get(c) is not None for row in rows)]
        if set(columns) <= _HEAD:
            continue
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        for row in rows:
            writer.writerow([_shown(row.get(column)) for column in columns])
        texts[Path(folder) / file] = text.getvalue()
    write_all(texts)
    return list(texts)


#: Columns that say which core a row belongs to, and how long it ran.
_HEAD = frozenset(TABLES["PipeUtilization.csv"]) & frozenset(TABLES["MemoryL0.csv"])


def _shown(value: float | int | str | None) -> str:
    if value is None:
        return NOT_AVAILABLE
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)
