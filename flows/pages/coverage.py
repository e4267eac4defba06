"""The table of library calls whose bits are known: by operator, formats and evidence."""

from collections import defaultdict

from vitruvian.common.validate import one_of
from vitruvian.flows.asic.report import markdown
from vitruvian.golden.plans import LibraryCall, recorded
from vitruvian.golden.plans.derived import shapes

#: Functions of PyTorch that make a call of each kind.
OPERATORS = {
    "mm": "`mm`, `matmul`, `einsum`, `linear` without a bias",
    "mm32": "`mm` with `out_dtype=torch.float32`",
    "linear": "`linear`, `addmm` with a bias",
    "bmm": "`bmm`, `matmul` and `einsum` of stacks",
    "scaled": "`_scaled_mm`",
}
_COLUMNS = ("operator", "formats", "factors", "measured", "kernel recorded", "K", "M", "N")


def coverage(gpu: str) -> str:
    """Return the table of the calls that were recorded on a GPU, in Markdown.

    Measured calls have recorded results; of the others the kernel is known, and so the plan.

    Raises
    ------
    ValueError
        If no calls were recorded on this GPU.
    """
    one_of("GPU with recorded calls", gpu, ["h200"])
    kinds: dict[tuple[str, str, str], list[LibraryCall]] = defaultdict(list)
    measured = recorded(gpu)
    for call in {**measured, **shapes(gpu)}:
        formats = call.a if call.a == call.b else f"{call.a} × {call.b}"
        factors = f"by {call.scales}" if call.scales else ""
        fast = ", fast sums" if call.fast else ""
        kinds[call.op, formats, factors + fast].append(call)
    rows: list[list[str]] = []
    for (op, formats, factors), calls in sorted(kinds.items()):
        known = sum(call in measured for call in calls)
        spans = (
            f"{min(sizes)} to {max(sizes)}"
            for sizes in zip(*((call.k, call.m, call.n) for call in calls), strict=True)
        )
        counts = (f"{known}", f"{len(calls) - known}")
        rows.append([OPERATORS[op], formats, factors, *counts, *spans])
    return "\n" + markdown((list(_COLUMNS), rows)) + "\n"
