"""The pipeline of a core for sparse tensor algebra, for the balance of registers."""

from collections.abc import Callable
from typing import Any

from vitruvian.flows.formal.balance import Pipeline
from vitruvian.hdl.sparse.os_core import OSCore


def _output_stationary(core: Any) -> Pipeline:
    return Pipeline(
        component=core,
        latency=lambda name: core.latency - name.startswith("carry"),
        ignored=[core.o.ready],
        state=["carry", "carry_some"],
        enables=["i__ready"],
    )


#: The function of each component, which ``flows.formal.balance`` takes.
PIPELINES: dict[type, Callable[[Any], Pipeline]] = {OSCore: _output_stationary}
