"""Row of ``make sim``: 20 handwritten digits on the compiled core."""

from collections.abc import Iterator
from functools import partial

from vitruvian.sim.kernels.digits.network import SAMPLE, digits
from vitruvian.sim.kernels.digits.run import run_batch
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result

#: Seconds of the first build of a core's model, which the rows of random programs share.
_WEIGHT = 100


def checks() -> Iterator[Check]:
    """Yield the row."""
    yield Check(
        unit="core.Digits",
        configuration=f"tiny, {SAMPLE} images",
        run=partial(_sample, "tiny"),
        weight=_WEIGHT,
    )


def _sample(core: str, vectors: int, seed: int) -> Result:
    del vectors, seed  # the images and the weights are fixed
    done = run_batch(*digits(SAMPLE), core)
    wrong = done.differ + done.differ_simulated
    examples = (
        f"{done.differ} bytes differ from golden, {done.differ_simulated} from the simulator, "
        f"{done.images - done.same} classes from golden's",
    )
    vectors = done.compared + done.simulated
    return Result(vectors=vectors, mismatches=wrong, examples=examples if wrong else ())
