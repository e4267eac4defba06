"""Instructions that Cube-fx has on all chips: matrices to L0B, and logarithms of inputs."""

from vitruvian.sim.davinci import Core, Unit, View
from vitruvian.sim.davinci.isa.operands import FRACTAL_BYTES
from vitruvian.sim.kernels.cubefx.golden import LEAST_LOG
from vitruvian.sim.kernels.cubefx.mapping import SIDE, Mapping
from vitruvian.sim.kernels.ring import ordered

V, MTE1, MTE2 = Unit.V, Unit.MTE1, Unit.MTE2


def load_windows(
    core: Core, mapping: Mapping, matrices: list[View], sequences: list[View], coefficients: View
) -> None:
    """Load the matrices that stay in L0B: windows of their storage, and the coefficients.

    Parameters
    ----------
    matrices : list of View
        In global memory: the storages (see ``layout.window``), then the packed coefficients.
    sequences : list of View
        In L0B: the windows of each storage.
    coefficients : View
        In L0B.
    """
    columns, merged = mapping.power_columns, mapping.merged
    stored = []
    for source in matrices:
        stored.append(core.allocate("L1", source.shape, "fp16", source.name))
        core.copy(stored[-1].reshape(source.size), source.reshape(source.size))
    ordered(core, MTE2, MTE1, 7)
    for target, storage in zip(sequences, stored, strict=False):
        for column in range(columns):
            # The window slides up from the last row at which it can begin.
            core.load(
                target[column * SIDE * SIDE :],
                storage[column, (mapping.loops - 1) * merged :, :],
                repeat=mapping.loops,
                src_stride=-merged * SIDE * storage.itemsize,
                dst_stride=columns * FRACTAL_BYTES,
                transpose=True,
            )
    core.load(coefficients, stored[-1].reshape(stored[-1].size))


def emit_logarithms(core: Core, x: View, negative: View | None, halvings: int) -> None:
    """Replace inputs in UB by ln |x / 2**halvings|, at least ``LEAST_LOG``.

    Parameters
    ----------
    x : View
        FP16.
    negative : View or None
        Receives the number 2 for each input with the sign −, and 0 for each other one.
    """
    if negative is not None:
        # The sign bit becomes 0x4000, which is the number 2.
        bits = negative.astype("uint16")
        core.vshr(bits, x.astype("uint16"), amount=15)
        core.pipe_barrier(V)
        core.vshl(bits, bits, amount=14)
    core.vabs(x, x)
    core.pipe_barrier(V)
    if halvings:
        core.vmuls(x, x, 2.0**-halvings)
        core.pipe_barrier(V)
    core.vln(x, x)
    core.pipe_barrier(V)
    core.vmaxs(x, x, LEAST_LOG)
