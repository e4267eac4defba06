"""Plans of calls whose kernels were recorded on a GPU, and not their results.

A kernel's name and grid say how many slices it makes of K, and of how many terms its tiles are;
everything else follows from the formats. ``tests/support/library_plans.py`` reads them, and its
tests compare this with every measured plan of such kernels.
"""

import csv
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType

from .plan import Plan, contiguous
from .recorded import LibraryCall, check_gpu

#: Terms from which a sum of FP8 restarts without ``use_fast_accum``.
_RESTART = 128


def rule_of(call: LibraryCall, gpu: str = "h200") -> str:
    """Return the rule by which the matrix unit, or for FP32 and FP64 the cores, add the terms."""
    if call.op == "scaled":
        return f"{gpu}_wgmma_{call.a if call.a == call.b else f'{call.a}x{call.b}'}_fp32"
    if call.a in ("fp32", "fp64"):
        return f"fma_{call.a}"
    return f"{gpu}_mma_{call.a}_fp32"


def of_slices(call: LibraryCall, slices: str, evidence: str, gpu: str = "h200") -> Plan:
    """Return the plan of a call in slices.

    Parameters
    ----------
    call : LibraryCall
    slices : str
        Their number and the terms of a tile: "3 × 64" if they are contiguous, "3 cyclic 8" if
        tiles belong to them in turn; "1" for one.
    evidence : str
        As that of ``Plan``.
    gpu : str
        Whose rules add the terms.
    """
    count, *more = slices.split()
    cyclic = starts = None
    if more and more[0] == "cyclic":
        cyclic = int(more[1]), int(count)
    elif more:
        starts = contiguous(call.k, int(count), int(more[1]))
    restarts = call.op == "scaled" and (not call.fast or call.scales == "block")
    return Plan(
        rule=rule_of(call, gpu),
        # Instructions of FP16 and BF16 have 16 terms, and those of TF32 eight.
        step={"fp16": 16, "bf16": 16, "tf32": 8}.get(call.a),
        restart=_RESTART if restarts else 0,
        starts=starts or (0,),
        cyclic=cyclic,
        scales=call.scales,
        bias=call.bias,
        output=call.output,
        evidence=evidence,
    )


@lru_cache
def shapes(gpu: str = "h200") -> Mapping[LibraryCall, str]:
    """Return the slices of each call whose kernel was recorded on a GPU, as ``of_slices`` takes.

    Raises
    ------
    UserError
        If there are none.
    """
    check_gpu(gpu)
    found: dict[LibraryCall, str] = {}
    text = files("vitruvian.golden.plans").joinpath(f"cublas_{gpu}_shapes.csv").read_text()
    for row in csv.DictReader(text.splitlines()):
        m, n, k = (int(row.pop(name)) for name in "mnk")
        for kind, slices in row.items():
            if slices:
                op, a, layout, output, *more = kind.split()
                call = LibraryCall(
                    op=op,
                    a=a,
                    b=a,
                    m=m,
                    k=k,
                    n=n,
                    layout=layout,
                    output=output,
                    fast="fast" in more,
                    scales=next((name for name in more if name in ("tensor", "row")), ""),
                    bias="bias" in more,
                )
                found[call] = slices
    return MappingProxyType(found)
