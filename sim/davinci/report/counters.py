"""The columns of msprof's CSV files of counters, and a reader of such files.

``TABLES`` names the columns of each file, and ``meaning`` explains a column. ``counting`` writes
the counters of a simulated run in these columns. The names are those that the public documentation
of msprof (op_summary) and of msprof op (the other files) gives. A column whose value the simulator
does not have is left out. In the row of a core of another kind a column has the text N/A, as in
msprof's files.

References
----------
MindStudio, msprof: "op_summary (Operator Details)"; msprof op: "ArithmeticUtilization", "Memory",
"MemoryL0" and "PipeUtilization".
"""

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from vitruvian.sim.davinci.chip.model import GM
from vitruvian.sim.davinci.isa.instruction import Unit

#: Text of a value that a row does not have.
NOT_AVAILABLE = "N/A"

#: A row of a file: numbers and texts by the names of columns; None for N/A.
Row = dict[str, Any]

#: The names of the units in the columns of msprof op, and in those of op_summary.
UNIT_NAMES = {
    Unit.M: ("cube", "mac"),
    Unit.V: ("vec", "vec"),
    Unit.S: ("scalar", "scalar"),
    Unit.MTE1: ("mte1", "mte1"),
    Unit.MTE2: ("mte2", "mte2"),
    Unit.MTE3: ("mte3", "mte3"),
    Unit.FIX: ("fixpipe", "fixpipe"),
}

#: Transfers whose amount Memory.csv has: the path and the name in the column.
TRANSFERS = {
    "GM->L1": "GM_to_L1_{}",
    "L1->GM": "L1_to_GM_{}(estimate)",
    "L0C->L1": "L0C_to_L1_{}",
    "L0C->GM": "L0C_to_GM_{}",
    "GM->UB": "GM_to_UB_{}",
    "UB->GM": "UB_to_GM_{}",
}

#: Bandwidths by memory and direction: the file, the name in the column, and whether the column is
#: of cores with a Cube alone.
BANDWIDTHS = {
    ("L1", "read"): ("Memory.csv", "l1_read_bw", True),
    ("L1", "write"): ("Memory.csv", "l1_write_bw", True),
    (GM, "read"): ("Memory.csv", "main_mem_read_bw", False),
    (GM, "write"): ("Memory.csv", "main_mem_write_bw", False),
    ("L0A", "write"): ("MemoryL0.csv", "l0a_write_bw", True),
    ("L0B", "write"): ("MemoryL0.csv", "l0b_write_bw", True),
}

#: Dtypes whose share of the vector unit's time has a column of its own; others are "misc".
VECTOR_DTYPES = ("fp32", "fp16", "int32", "int16")
#: Dtypes whose share of the Cube's time has a column of its own.
CUBE_DTYPES = ("fp16", "int8")
#: Dtypes whose operations count as floating-point operations.
FLOATS = frozenset(("fp16", "fp32", "fp64", "bf16", "tf32", "fp8e4m3", "fp8e5m2", "fp32c"))


def amount_column(path: str) -> str:
    """Return the column with the KB that a core moves over a path of ``TRANSFERS``."""
    name = TRANSFERS[path].format("datas")
    return name.replace("(estimate)", "(KB)(estimate)") if "(" in name else f"{name}(KB)"


def usage_column(path: str) -> str:
    """Return the column with the share of a path's rate that a core uses, in per cent."""
    name = TRANSFERS[path].format("bw_usage_rate")
    return name.replace("(estimate)", "(%)(estimate)") if "(" in name else f"{name}(%)"


def _tables() -> dict[str, tuple[str, ...]]:
    """Return the columns of the files of msprof op, each in the order in which they stand."""
    head = ["block_id", "sub_block_id"]
    head += [f"{p}_{x}" for p in ("aic", "aiv") for x in ("time(us)", "total_cycles")]
    kinds = {
        "aic": (Unit.M, Unit.V, Unit.S, Unit.FIX, Unit.MTE1, Unit.MTE2, Unit.MTE3),
        "aiv": (Unit.V, Unit.S, Unit.MTE2, Unit.MTE3),
    }
    pipes = [
        f"{p}_{UNIT_NAMES[unit][0]}_{x}"
        for p, units in kinds.items()
        for unit in units
        for x in ("time(us)", "ratio")
    ]
    arithmetic = ["aic_cube_ratio", *(f"aic_cube_{d}_ratio" for d in CUBE_DTYPES)]
    arithmetic += ["aic_cube_fops", "aic_cube_total_instr_number"]
    arithmetic += ["aic_cube_fp_instr_number", "aic_cube_int_instr_number"]
    for p in ("aic", "aiv"):
        arithmetic += [f"{p}_vec_ratio"]
        arithmetic += [f"{p}_vec_{d}_ratio" for d in (*VECTOR_DTYPES, "misc")]
        arithmetic += [f"{p}_vec_fops"]
    memory = [f"{p}_{x}_bw(GB/s)" for p in ("aic", "aiv") for x in ("ub_to_gm", "gm_to_ub")]
    level0: list[str] = []
    # The order of the columns is that of the files which msprof writes.
    for file, name, cube_alone in BANDWIDTHS.values():
        columns = memory if file == "Memory.csv" else level0
        columns += [f"{p}_{name}(GB/s)" for p in (("aic",) if cube_alone else ("aic", "aiv"))]
    for p, units in (("aic", ("mte1", "mte2", "mte3")), ("aiv", ("mte2", "mte3"))):
        memory += [f"{p}_{unit}_{x}" for unit in units for x in ("instructions", "ratio")]
    memory += ["read_main_memory_datas(KB)", "write_main_memory_datas(KB)"]
    memory += [amount_column(path) for path in TRANSFERS] + [
        usage_column(path) for path in TRANSFERS
    ]
    return {
        "PipeUtilization.csv": (*head, *pipes),
        "ArithmeticUtilization.csv": (*head, *arithmetic),
        "Memory.csv": (*head, *memory),
        "MemoryL0.csv": (*head, *level0),
    }


def _summary_columns() -> tuple[str, ...]:
    """Return the columns of op_summary.csv, of chips with one kind of core and with two."""
    columns = ["Op Name", "OP Type", "Task Type", "Task Start Time(us)", "Task Duration(us)"]
    columns += ["Block Dim", "Mix Block Dim", "aicore_time(us)", "total_cycles"]
    units = (Unit.V, Unit.M, Unit.S, Unit.MTE1, Unit.MTE2, Unit.MTE3)
    columns += [f"{UNIT_NAMES[u][1]}_{x}" for u in units for x in ("time(us)", "ratio")]
    columns += ["memory_bound", "cube_fops", "vector_fops", "aic_total_cycles"]
    units = (Unit.M, Unit.S, Unit.MTE1, Unit.MTE2, Unit.FIX)
    columns += [f"aic_{UNIT_NAMES[u][1]}_{x}" for u in units for x in ("time(us)", "ratio")]
    columns += ["aic_cube_fops", "aiv_time(us)", "aiv_total_cycles"]
    units = (Unit.V, Unit.S, Unit.MTE2, Unit.MTE3)
    columns += [f"aiv_{UNIT_NAMES[u][1]}_{x}" for u in units for x in ("time(us)", "ratio")]
    return (*columns, "aiv_vector_fops")


#: The columns of each file, in order. A file that is written lacks the columns that no row has.
TABLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"op_summary.csv": _summary_columns(), **_tables()}
)

_MEANINGS = {
    "block_id": "number of the core, or of the group of cores",
    "sub_block_id": "kind of the core and its number in the group",
    "Op Name": "name of the program",
    "OP Type": "name of the program",
    "Task Type": "AI_CORE, AI_VECTOR_CORE, or MIX_AIC if cores of two kinds run",
    "Task Start Time(us)": "0: a run is alone",
    "Task Duration(us)": "µs from the launch to the end of the last instruction",
    "Block Dim": "number of cores with a Cube, or of vector cores if no other core runs",
    "Mix Block Dim": "number of vector cores that run beside cores with a Cube",
    "memory_bound": "mte2_ratio / the larger of mac_ratio and vec_ratio",
    "read_main_memory_datas(KB)": "KB that the core reads from global memory",
    "write_main_memory_datas(KB)": "KB that the core writes to global memory",
}
_ENDINGS = {
    "instr_number": "number of these Cube instructions",
    "instructions": "number of the unit's instructions",
    "total_cycles": "cycles of the core; in op_summary, of all cores of the kind together",
    "fops": "floating-point operations; a multiply-accumulate counts as 2, a vector lane as 1",
    "_datas": "KB that the core moves over the path",
    "_bw_usage_rate": "per cent of what the path moves at its full rate in the core's time",
    "_bw": "GB/s: bytes that the core moves / its time / 10⁹",
    "_ratio": "busy time of the unit (with these operands) / the core's time",
}


def meaning(column: str) -> str:
    """Return the meaning of a column of ``TABLES`` in the files that the simulator writes.

    KB are 1024 bytes and GB are 10⁹ bytes. The core's time is that from its start to the end of its
    last instruction; a unit is busy while an instruction runs. In op_summary, times are means over
    the cores.

    Raises
    ------
    ValueError
        If no file has the column.
    """
    if not any(column in columns for columns in TABLES.values()):
        raise ValueError(f"column must be one of those in TABLES, not {column!r}")
    if column in _MEANINGS:
        return _MEANINGS[column]
    # The unit in parentheses is no part of the name that the endings describe.
    name = column.replace("(estimate)", "").partition("(")[0]
    for ending, text in _ENDINGS.items():
        if name.endswith(ending):
            return text
    parts = name.removesuffix("_time").split("_")
    if parts[-1] in ("aic", "aiv", "aicore"):
        return "µs of the core"
    return "µs in which the unit is busy"


#: A file of counters has at most this number of bytes and columns.
_MAX_BYTES, _MAX_COLUMNS = 1 << 28, 1000


def read_counters(path: str | Path, required: Iterable[str] = ()) -> list[Row]:
    """Read a CSV file of counters, of the simulator or of real profiling.

    Parameters
    ----------
    path : str or Path
        A file in UTF-8 whose first line names the columns. Any columns are allowed.
    required : iterable of str
        Columns that the file must have.

    Returns
    -------
    list of dict
        A row by the names of its columns: a number if the text is a finite one, None for N/A or an
        empty text, else the text without the white space around it.

    Raises
    ------
    ValueError
        If the file is no such table; the message is one line with the file and the line.
    OSError
        If the file cannot be read.
    """
    path = Path(path)
    # A device has the size 0 and no end.
    if path.exists() and not path.is_file():
        raise ValueError(f"{path.name}: file must not be a folder, device or pipe")
    if path.stat().st_size > _MAX_BYTES:
        raise ValueError(f"{path.name}: file must have at most {_MAX_BYTES} bytes")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path.name}: file must be text in UTF-8") from None
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise ValueError(f"{path.name}: file must be a table in CSV: {error}") from None
    names = [name.strip() for name in lines[0]] if lines else []
    twice = [name for name, n in Counter(names).items() if n > 1]
    if not any(names) or twice or len(names) > _MAX_COLUMNS:
        why = f"{twice[0]!r} twice" if twice else f"{len(names)} of them"
        raise ValueError(
            f"{path.name}:1: first line must have 1 … {_MAX_COLUMNS} names of columns, not {why}"
        )
    missing = [name for name in required if name not in names]
    if missing:
        raise ValueError(f"{path.name}:1: columns must include {', '.join(missing)}")
    rows: list[Row] = []
    for number, line in enumerate(lines[1:], 2):
        if not any(cell.strip() for cell in line):
            continue
        if len(line) != len(names):
            raise ValueError(
                f"{path.name}:{number}: row must have {len(names)} values, not {len(line)}"
            )
        rows.append(dict(zip(names, map(_value, line), strict=True)))
    return rows


def _value(text: str) -> Any:
    text = text.strip()
    if text in ("", NOT_AVAILABLE):
        return None
    try:
        number = float(text)
    except ValueError:
        return text
    # Python reads 1_0 as 10, and "nan" as a number.
    return number if math.isfinite(number) and "_" not in text else text
