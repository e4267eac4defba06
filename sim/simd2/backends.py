"""The back ends of a SIMD² machine by name."""

from vitruvian.golden.simd2 import mmo as golden_mmo
from vitruvian.golden.simd2 import mmo_sparse as golden_mmo_sparse
from vitruvian.sim.backends import Backend, check_callable

#: Back ends by name; each has the parameters of ``golden.simd2.mmo``.
BACKENDS: dict[str, Backend] = {"golden": golden_mmo}

#: Back ends for a compressed A by name; each has the parameters of ``golden.simd2.mmo_sparse``.
SPARSE_BACKENDS: dict[str, Backend] = {"golden": golden_mmo_sparse}


def register_backend(name: str, mmo: Backend, mmo_sparse: Backend | None = None) -> None:
    """Let machines compute with ``mmo``, which has the parameters of ``golden.simd2.mmo``.

    If ``mmo`` has a method ``on(unit)``, machines call the function that this method returns. That
    function has the same parameters, and returns D and the clock cycles it took on the unit (see
    ``sim.backends.MeasuresCycles``).

    Parameters
    ----------
    name : str
        Name of the back end; an existing one of the same name is replaced.
    mmo_sparse : callable, optional
        The same for A in 2:4 form, with the parameters of ``golden.simd2.mmo_sparse``. Without it
        the back end cannot compute with a compressed A.

    Raises
    ------
    TypeError
        If one of the two is not callable.
    """
    check_callable("mmo", "golden.simd2.mmo", mmo)
    if mmo_sparse is not None:
        check_callable("mmo_sparse", "golden.simd2.mmo_sparse", mmo_sparse)
    BACKENDS[name] = mmo
    SPARSE_BACKENDS.pop(name, None)
    if mmo_sparse is not None:
        SPARSE_BACKENDS[name] = mmo_sparse
