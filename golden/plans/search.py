"""Which plan a call of a library has."""

from collections.abc import Callable, Mapping

from vitruvian.common.errors import UserError

from .derived import of_slices, shapes
from .plan import Plan
from .published import published
from .recorded import GPUS, LibraryCall, recorded

#: What two calls must have in common before their sizes are compared, the most important first.
_NAMES = ("op", "a", "b", "output", "scales", "fast", "bias", "layout", "batch")


def find(
    call: LibraryCall,
    gpu: str = "h200",
    assume: bool = False,
    plans: Mapping[LibraryCall, Plan] | None = None,
) -> Plan:
    """Return the plan of a call.

    Parameters
    ----------
    call : LibraryCall
    gpu : {"h200", "h100"}
        Of the H100, calls of ``_scaled_mm`` with factors by tensor are known, if the package
        mmaemu is installed, which recorded their slices.
    assume : bool
        Whether a call that was not recorded has the slices of the nearest one that was. Such a
        plan has the evidence "assumed".
    plans : mapping, optional
        Plans that go before those of the GPU, for example of ``load``.

    Raises
    ------
    UserError
        If neither its results nor its kernel were recorded on the GPU: a library may compute it in
        another way than calls of other shapes. The message names the recorded call that is nearest
        in size. With ``assume``: if none was recorded with these operations and formats.

    Examples
    --------
    >>> call = LibraryCall(op="mm", a="fp16", b="fp16", m=512, k=512, n=512, output="fp16")
    >>> print(find(call))
    h200_mma_fp16_fp32; 16 terms a step; to fp16 (measured)
    """
    if plans is not None and call in plans:
        return plans[call]
    if gpu == "h100":
        return published(call)
    if gpu not in GPUS:
        raise UserError(f"gpu must be one of {', '.join(GPUS)}, h100, not {gpu!r}")
    plans, kernels = recorded(gpu), shapes(gpu)
    if call in plans:
        return plans[call]
    if call in kernels:
        return of_slices(call, kernels[call], "derived")
    near = nearest(call, gpu)
    if not assume:
        raise UserError(
            f"call must be one that was recorded on the {gpu.upper()}, such as {near}, not {call}"
        )
    if (call.op, call.a, call.b) != (near.op, near.a, near.b):
        raise UserError(f"no call {call.op} of {call.a} and {call.b} was recorded on {gpu.upper()}")
    return of_slices(call, slices_of(near, gpu), "assumed")


def nearest(
    call: LibraryCall, gpu: str = "h200", leave: Callable[[LibraryCall], bool] | None = None
) -> LibraryCall:
    """Return the other recorded call of most similar kind and, among those, of nearest size.

    Calls for which ``leave`` returns True are left out.
    """

    def far(other: LibraryCall) -> tuple[int, float]:
        differences = [getattr(call, name) != getattr(other, name) for name in _NAMES]
        weight = sum(2**place for place, wrong in enumerate(reversed(differences)) if wrong)
        ratio = 1.0
        for p, q in ((call.m, other.m), (call.k, other.k), (call.n, other.n)):
            ratio *= max(p, q) / max(min(p, q), 1)
        return weight, ratio

    known = (c for c in (*recorded(gpu), *shapes(gpu)) if c != call)
    return min((c for c in known if leave is None or not leave(c)), key=far)


def slices_of(call: LibraryCall, gpu: str = "h200") -> str:
    """Return the slices of a recorded call, as ``of_slices`` takes them."""
    kernels = shapes(gpu)
    if call in kernels:
        return kernels[call]
    plan = recorded(gpu)[call]
    if plan.cyclic is not None:
        tile, count = plan.cyclic
        return f"{count} cyclic {tile}"
    many = len(plan.starts)
    return "1" if many == 1 else f"{many} × {plan.starts[1]}"
