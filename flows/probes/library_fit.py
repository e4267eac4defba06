"""Find the plans of recorded library calls: which order of the sum gives the recorded bits.

Every candidate is judged by sampled results of a call: it must give all of one half, and the first
that does is a plan if it gives all of the other half as well. Kernels whose names tell their slices
are tried first.
"""

import csv
import io
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.files import write_whole
from vitruvian.flows.probes import library_operands
from vitruvian.golden.machines.table import machines
from vitruvian.golden.plans import LibraryCall, Plan, contiguous
from vitruvian.golden.plans.product import dots

#: Names of GPUs, as drivers write them, and their machines in the table of rules.
GPUS = {
    "V100": "v100",
    "T4": "t4",
    "A100": "a100",
    "H100": "h100",
    "H200": "h200",
    "L40": "ada",
    "L4": "ada",
    "RTX 40": "ada",
    "B200": "b200",
    "RTX 50": "rtx50",
}
#: The columns of a table of plans.
COLUMNS = (
    *("op", "a", "b", "m", "k", "n", "batch", "layout", "output", "fast", "scales", "bias"),
    *("rule", "step", "restart", "starts", "cyclic", "remainder_first"),
)
_INSTRUCTIONS = ("wgmma", "tcgen05", "mma")  # as products of FP8 prefer them
_NAMES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64"}
_TILES = (64, 128, 32, 16, 8, 256)
_MOST_SLICES = 64
_ELEMENTS = 8  # fewest different elements among the samples
_FIRST = 3  # samples of each kind that most candidates fail by


@dataclass(frozen=True)
class RecordedCall:
    """A call with its kernels and some of its results.

    Attributes
    ----------
    call : LibraryCall
    number : int
        Its number in the recording, which chooses the elements.
    kernels : tuple of (str, list of int)
        Names and grids.
    samples : mapping of str to ndarray
        Codes of the chosen elements for each kind of operands.
    """

    call: LibraryCall
    number: int
    kernels: tuple[tuple[str, list[int]], ...]
    samples: Mapping[str, np.ndarray]

    def results(self, plan: Plan, kind: str, some: slice) -> np.ndarray:
        """Return the codes that a plan gives for some of the samples."""
        call = self.call
        rows, columns = library_operands.sampled(self.number, call.m, call.n, 192)
        rows, columns = rows[: len(self.samples[kind])], columns[: len(self.samples[kind])]
        rows, columns = rows[some], columns[some]
        a = library_operands.rows(call.a, rows, call.k, kind, "a")
        b = library_operands.rows(call.b, columns, call.k, kind, "b")
        if call.a == "tf32":  # values of FP32, which the product rounds if it is in TF32
            a, b = a.view(np.float32), b.view(np.float32)
        return dots(a, b, plan=plan, **self._more(rows, columns)).view(self.samples[kind].dtype)

    def agrees(self, plan: Plan, some: slice) -> bool:
        """Return True if a plan gives some of the samples of all kinds."""
        return all(
            np.array_equal(self.results(plan, kind, some), measured[some])
            for kind, measured in reversed(list(self.samples.items()))
        )

    def _more(self, rows: np.ndarray, columns: np.ndarray) -> dict[str, Any]:
        """Return the factors and the bias of some elements."""
        call = self.call
        more: dict[str, Any] = {}
        if call.scales == "block":
            blocks = np.arange(call.k // 128)
            first = rows[:, None] * len(blocks) + blocks
            second = blocks * (call.n // 128) + columns[:, None] // 128
            more["scale_a"] = library_operands.scales(first, "scale_a")
            more["scale_b"] = library_operands.scales(second, "scale_b")
        elif call.scales:
            own = call.scales == "row"
            more["scale_a"] = library_operands.scales(rows * own, "scale_a")
            more["scale_b"] = library_operands.scales(columns * own, "scale_b")
        if call.bias:
            name = "tf32" if call.a == "tf32" else call.output
            bias = library_operands.rows(name, np.array([0]), call.n, "narrow", "bias")[0]
            more["bias"] = bias[columns]
        return more


def load(folder: Path) -> tuple[str, list[RecordedCall]]:
    """Return the machine of a recording, as the table of rules names it, and its calls.

    Parameters
    ----------
    folder : Path
        What ``library_record`` wrote.

    Raises
    ------
    UserError
        If there is no recording, it is damaged, or its GPU is not known.
    """
    try:
        text = json.loads((folder / "calls.json").read_text())
        blob = zlib.decompress((folder / "calls.bin.z").read_bytes())
        gpu = str(text["machine"]["gpu"])
        calls = [
            recorded_call(case, number, blob)
            for number, case in enumerate(text["calls"])
            if "error" not in case and case["op"] != "int_mm"
        ]
    except OSError as error:
        raise UserError(f"FOLDER must have the files calls.json and calls.bin.z: {error}") from None
    except (ValueError, KeyError, TypeError, zlib.error) as error:
        raise UserError(f"{folder} must be what plans record wrote, undamaged: {error!r}") from None
    machine = next((name for key, name in GPUS.items() if key in gpu), None)
    if machine is None:
        raise UserError(f"the GPU must be one of {', '.join(GPUS)}, not {gpu!r}")
    return machine, calls


def recorded_call(case: dict[str, Any], number: int, blob: bytes) -> RecordedCall:
    """Return one call of a recording."""
    samples = {}
    for kind in library_operands.KINDS:
        place = case["samples"][kind]
        count = int(np.prod(place["shape"]))
        samples[kind] = np.frombuffer(blob, place["dtype"], count, place["offset"])
    kernels = tuple((str(k["name"]), k["grid"] or []) for k in case.get("kernels", ()))
    return RecordedCall(call_of(case, case["samples"]["out"]), number, kernels, samples)


def call_of(case: Mapping[str, Any], result: str) -> LibraryCall:
    """Return a case of the recorder, whose results have a type of PyTorch, as a call."""
    return LibraryCall(
        **{name: case[name] for name in ("op", "a", "b", "m", "k", "n", "layout")},
        batch=case.get("batch", 1),
        output=_NAMES[result.removeprefix("torch.")],
        fast=bool(case.get("fast")),
        scales=case.get("scales") or "",
        bias=bool(case.get("bias")),
    )


def fit(recorded: RecordedCall, machine: str) -> Plan | None:
    """Return the plan that gives all samples of a call.

    None if no candidate does, or the result has so few elements that several would.
    """
    count = len(next(iter(recorded.samples.values())))
    rows, columns = library_operands.sampled(recorded.number, recorded.call.m, recorded.call.n, 192)
    if len({*zip(rows[:count].tolist(), columns[:count].tolist(), strict=True)}) < _ELEMENTS:
        return None
    half = count // 2
    for plan in candidates(recorded, machine):
        if not recorded.agrees(plan, slice(min(_FIRST, half))):
            continue
        if recorded.agrees(plan, slice(half)) and recorded.agrees(plan, slice(half, count)):
            return replace(plan, evidence="measured")
    return None


def candidates(recorded: RecordedCall, machine: str) -> Iterator[Plan]:
    """Yield plans that a call may have, the likely ones first and none twice."""
    seen: set[Plan] = set()
    for plan in _candidates(recorded, machine):
        if plan not in seen:
            seen.add(plan)
            yield plan


def _candidates(recorded: RecordedCall, machine: str) -> Iterator[Plan]:
    call = recorded.call
    told = kernel_slices(recorded.kernels, call)
    for rule, step in rules(call, machine):
        plan = Plan(
            rule=rule,
            step=step,
            scales=call.scales,
            bias=call.bias,
            output=call.output,
            restart=128 if call.scales == "block" else 0,
        )
        restarts = (0, 128) if call.fast or call.op != "scaled" else (128, 0)
        for restart in (128,) if call.scales == "block" else (*restarts, 64, 32):
            own = replace(plan, restart=restart)
            if told is not None:
                yield _in_slices(own, call.k, told)
            yield own
            for starts in _contiguous(call.k):
                yield replace(own, starts=starts)
        if call.scales != "block":
            for first in (16, 32, 64, 128):
                yield replace(plan, remainder_first=first)
                for starts in _contiguous(call.k):
                    yield replace(plan, remainder_first=first, starts=starts)
            for tile in _TILES:
                for many in range(2, min(_MOST_SLICES, call.k // tile) + 1):
                    yield replace(plan, cyclic=(tile, many))


def _in_slices(plan: Plan, k: int, slices: str) -> Plan:
    count, *more = slices.split()
    if not more:
        return plan
    if more[0] == "cyclic":
        return replace(plan, cyclic=(int(more[1]), int(count)))
    return replace(plan, starts=contiguous(k, int(count), int(more[1])))


def _contiguous(k: int) -> Iterator[tuple[int, ...]]:
    seen: set[tuple[int, ...]] = {(0,)}
    for tile in _TILES:
        for many in range(2, min(_MOST_SLICES, -(-k // tile)) + 1):
            starts = contiguous(k, many, tile)
            if starts not in seen:
                seen.add(starts)
                yield starts


def rules(call: LibraryCall, machine: str) -> list[tuple[str, int | None]]:
    """Return the rules and the terms of a step that a call may use on a machine."""
    if call.a in ("fp32", "fp64"):
        return [(f"fma_{call.a}", None)]
    formats = call.a if call.a == call.b else f"{call.a}x{call.b}"
    steps = {"fp16": (16, 8), "bf16": (16, 8), "tf32": (8, 4)}.get(call.a, (None, 16))
    known = machines()
    distinct: dict[object, str] = {}  # an instruction whose rule another one has adds nothing
    for instruction in _INSTRUCTIONS if call.op == "scaled" else reversed(_INSTRUCTIONS):
        row = f"{machine}_{instruction}_{formats}_fp32"
        if row in known:
            distinct.setdefault(known[row].rule, row)
    found: list[tuple[str, int | None]] = [(r, step) for r in distinct.values() for step in steps]
    if call.a == "tf32":
        found.append(("fma_fp32", None))
    return found


def nvjet_slices(name: str, grid: Sequence[int], m: int, n: int, k: int) -> int:
    """Return the slices of K of a kernel nvjet of cuBLAS, by its name and its grid.

    The name has the tile of the product (whose rows are the columns of PyTorch's result), the tile
    of K, and the cluster; a grid of a kernel that splits K has a block for each tile and slice.
    """
    numbers = re.search(r"nvjet_sm90_\w+?_(\d+)x(\d+)_(\d+)x\d+_(\d+)x(\d+)_[hv]_", name)
    if numbers is None or "splitK" not in name:
        return 1
    rows, columns, depth, wide, high = map(int, numbers.groups())
    tiles = _multiple(-(-n // rows), wide) * _multiple(-(-m // columns), high)
    slices = max(1, grid[0] * grid[1] // tiles)
    steps = -(-k // depth)
    return -(-steps // -(-steps // slices))  # the last slices may be empty


def _multiple(value: int, of: int) -> int:
    return -(-value // of) * of


#: Kernels of one slice each, by the beginnings of their names, and of several if another follows.
_XMMA = re.compile(r"sm(80|90)_xmma_gemm_f32f32_(f32f32|tf32f32)_f32_")


def kernel_slices(kernels: Sequence[tuple[str, Sequence[int]]], call: LibraryCall) -> str | None:
    """Return the slices of K that the kernels of a call make, as ``golden.plans`` writes them.

    None if the family of kernels does not tell: its measured calls have several plans, or none.
    """
    working = [each for each in kernels if not each[0].startswith("Memset")]
    if not working:
        return None
    (name, grid), *more = working
    cleared = len(kernels) > len(working)  # memory that blocks tell each other by
    if name.startswith("nvjet"):
        # The grid is that of all cores, or slices end at other tiles than here.
        if "splitK" in name and (cleared or "blk128" in name):
            return None
        count = nvjet_slices(name, grid, call.m, call.n, call.k)
        depth = re.search(r"nvjet_sm90_\w+?_\d+x\d+_(\d+)x", name)
        return "1" if count == 1 or depth is None else f"{count} × {depth[1]}"
    tf32 = call.a == "tf32"
    if not _XMMA.match(name) or cleared or ("_ffma_" in name and tf32):
        return None
    if not more:
        return "1"
    return f"{grid[2]} cyclic 8" if "_ffma_" in name and grid[2] > 1 else None


def row_of(call: LibraryCall, plan: Plan) -> dict[str, str]:
    """Return the row of a call with a plan in a table, as ``golden.plans`` reads it."""
    fields = {name: int(x) if isinstance(x, bool) else x for name, x in asdict(call).items()}
    more = {
        "rule": plan.rule,
        "step": plan.step or "",
        "restart": plan.restart or "",
        "starts": " ".join(map(str, plan.starts)) if plan.starts != (0,) else "",
        "cyclic": " ".join(map(str, plan.cyclic or ())),
        "remainder_first": plan.remainder_first or "",
    }
    return {name: str(value) for name, value in (fields | more).items()}


def write(path: Path, plans: Mapping[LibraryCall, Plan]) -> None:
    """Write a table of plans."""
    rows = sorted((row_of(call, plan) for call, plan in plans.items()), key=lambda r: [*r.values()])
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, text.getvalue())
