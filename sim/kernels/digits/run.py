"""The network for handwritten digits on the compiled core, beside golden and the simulator."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from vitruvian.common.cache import digest
from vitruvian.common.errors import UserError
from vitruvian.common.files import read_whole, write_whole
from vitruvian.sim.davinci.machine_code.core import core_product, run_on_core
from vitruvian.sim.davinci.semantics import Functional
from vitruvian.sim.kernels.digits.network import Layers, Weights, digits, golden, weights
from vitruvian.sim.kernels.digits.program import build, layers
from vitruvian.sim.rtl.core import core_config, model_key

#: Images of a program: with their results, they fit into one MiB of global memory.
MOST = 128


@dataclass(frozen=True, kw_only=True)
class DigitsRun:
    """A batch of images on the core.

    Attributes
    ----------
    images, correct, same : int
        Images, those whose class is their label, and those whose class is golden's.
    cycles, words : int
        Cycles of the core, and words of the program.
    busy : dict of str to int
        Cycles in which each unit had an instruction.
    compared, differ : int
        Bytes of all layers that were compared with golden, and those that differ.
    simulated, differ_simulated : int
        Bytes of all tensors that were compared with the simulator, and those that differ.
    """

    images: int
    correct: int
    same: int
    cycles: int
    words: int
    busy: dict[str, int]
    compared: int
    differ: int
    simulated: int
    differ_simulated: int

    def __add__(self, other: "DigitsRun") -> "DigitsRun":
        busy = {unit: count + other.busy[unit] for unit, count in self.busy.items()}
        sums = {
            f.name: getattr(self, f.name) + getattr(other, f.name)
            for f in fields(self)
            if f.name != "busy"
        }
        return DigitsRun(**sums, busy=busy)


def run_batch(
    images: np.ndarray, labels: np.ndarray, core: str, w: Weights | None = None
) -> DigitsRun:
    """Classify images by one program on a core, and compare the results of every layer.

    Parameters
    ----------
    images : (N, 8, 8) ndarray of float16
    labels : (N,) ndarray of int
    core : str
        A name in ``hdl.core.CORES``.
    w : Weights, optional
        By default, the trained ones.

    Raises
    ------
    ValueError, CoreFault
        As ``run_on_core``.
    """
    w = weights() if w is None else w
    program = build(images, w)
    functional = Functional(program, core_product(core))
    functional.run()
    done = run_on_core(program, core)
    found = layers(done.outputs)
    expected = golden(images, w, core_config(core).tile.spec("fp16"))
    wrong, count = 0, 0
    for f in fields(Layers):
        a, b = (_bytes(getattr(each, f.name)) for each in (found, expected))
        wrong, count = wrong + int((a != b).sum()), count + a.size
    return DigitsRun(
        images=len(images),
        correct=int((found.classes == labels).sum()),
        same=int((found.classes == expected.classes).sum()),
        cycles=done.run.cycles,
        words=done.run.words,
        busy=done.run.busy,
        compared=count,
        differ=wrong,
        simulated=sum(array.nbytes for array in done.outputs.values()),
        differ_simulated=sum(done.differing(dict(functional.tensors())).values()),
    )


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def run_all(
    count: int, core: str, *, batch: int = 100, resume: str | None = None
) -> Iterator[DigitsRun]:
    """Yield the result of each batch of the first digits.

    Parameters
    ----------
    resume : str, optional
        A JSON file of finished batches, which are not run again. Results of another model of the
        core, of other weights or of another size of batches do not count.

    Raises
    ------
    UserError
        If scikit-learn is needed and not installed, or the file is not one of this function.
    """
    images, labels = digits(count)
    w = weights()
    parts = [array.tobytes() for array in vars(w).values()]
    key = digest("digits", model_key(core), batch, *parts) if resume else ""
    finished = _read(resume, key) if resume else {}
    for start in range(0, count, batch):
        chosen = slice(start, min(start + batch, count))
        name = f"{start}-{chosen.stop}"
        if name not in finished:
            finished[name] = asdict(run_batch(images[chosen], labels[chosen], core, w))
            if resume:
                write_whole(resume, json.dumps({"digits": key, "batches": finished}, indent=1))
        yield DigitsRun(**finished[name])


def _read(path: str, key: str) -> dict[str, dict]:
    """Return the finished batches of a file, by their images."""
    if not Path(path).exists():
        return {}
    try:
        document = json.loads(read_whole(path))
        same, batches = document["digits"] == key, document["batches"]
        for each in batches.values():
            DigitsRun(**each)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path} must be absent or written by vitruvian digits --resume") from None
    return batches if same else {}
