"""The sparse wing: SIDA's dataflow for sparse matrices, its golden models, cores and simulator."""

from vitruvian.common.wings import CliCommand, Wing

_BENCHES = "vitruvian.sim.bench.sparse"

WING = Wing(
    folders=("vitruvian.golden.sparse", "vitruvian.hdl.sparse", "vitruvian.sim.sparse"),
    commands={
        "sparse": CliCommand(
            module="vitruvian.wings.sparse.command",
            text="run a sparse application, and simulate it on SIDA",
            group="graphs",
            main=True,
        )
    },
    faces=("sparse",),
    modules={
        "units": ("vitruvian.hdl.sparse.catalogue", "vitruvian.hdl.sparse.catalogue_oei"),
        "checks": (
            *(f"{_BENCHES}.batch", f"{_BENCHES}.ewise_batch", f"{_BENCHES}.simulated"),
            f"{_BENCHES}.oei",
        ),
        "vectors": (f"{_BENCHES}.vectors",),
        "header rules": ("vitruvian.flows.verilog.header_rules_sparse",),
        "pipelines": ("vitruvian.flows.formal.balance_sparse",),
        "proofs": ("vitruvian.flows.formal.streams_sparse",),
        "completion": ("vitruvian.wings.sparse.completion",),
    },
)
