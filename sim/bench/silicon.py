"""Comparison of golden and RTL with measured outputs of tensor cores.

A data set is a file ``<preset>_<format>.npz`` with the arrays ``a`` and ``b`` (N, K) and ``c``,
``d_fp32`` and ``d_fp16`` (N,), which hold codes, floats or fp32 bit patterns; docs/units/silicon.md
describes them. The data sets are not part of the project. If the folder ``../shared/data/silicon``
exists, each data set in it is a row of ``make sim``. ``vitruvian silicon FILE`` compares any other.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from vitruvian.common.npz import Header, Misfit, read_arrays
from vitruvian.golden.fp import DotSpec, fused_dot
from vitruvian.golden.machines.presets import PRESETS, parse_preset_name
from vitruvian.hdl.cube import MatrixUnit, MatrixUnitConfig, Start
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.sim.bench.codes import codes, rounded
from vitruvian.sim.machines.rtl import depth_for
from vitruvian.sim.rtl import compile_unit
from vitruvian.sim.rtl.tiles import bus_words
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result, compare

#: Folder of the measured data sets, beside the repository.
FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "silicon"

#: Formats that take a single step in a unit with FP32, which takes several.
NARROW = ("fp16", "bf16", "tf32")


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """The operands and the measured results of an instruction.

    Attributes
    ----------
    name : str
        Preset and formats, for tables.
    spec : DotSpec
        The preset's specification of the instruction.
    a, b : (N, K) ndarray, codes of ``spec.input`` and ``spec.input_b``
    c, d : (N,) ndarray, codes of ``spec.output``
        Addend and measured result.
    """

    name: str
    spec: DotSpec
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    d: np.ndarray


def load(
    path: Path,
    *,
    preset: str | None = None,
    formats: str | None = None,
    note: Callable[[str], object] = lambda text: None,
) -> list[DataSet]:
    """Read a file and return a data set for each output format in it.

    Parameters
    ----------
    path : Path
        The ``.npz`` file.
    preset, formats : str, optional
        Values that replace those in the file's name. ``formats`` is one name, or two names joined
        by ``_``.
    note : callable
        Function that is called with a line of text for each assumption or omission: an absent
        ``c``, arrays that are not read, and an output format that the preset does not have.

    Raises
    ------
    ValueError
        If the file's name or an array is wrong, or the preset has none of the output formats.
    OSError
        If the file cannot be read.
    """
    name = path.stem
    if preset or formats:
        head, _, tail = name.partition("_")
        name = f"{preset or head}_{formats or tail}"
    chosen, input_a, input_b = parse_preset_name(name)
    arrays, others = read_arrays(path, _KNOWN, partial(_check_shapes, path))
    if others:
        note(
            f"{path.name}: {', '.join(others)} is not read; the known names are {', '.join(_KNOWN)}"
        )
    if "c" not in arrays:
        note(f"{path.name} contains no c, so C = 0")
    specs, refusals = {}, []
    for output in ("fp32", "fp16"):
        array = _output(output, arrays)
        if array is None:
            continue
        try:
            specs[output] = array, chosen.spec(input_a, output, input_b=input_b)
        except ValueError as error:
            refusals.append((array, error))
    # A file may have an output format that the preset lacks, if it has another one.
    for array, error in refusals:
        if not specs:
            raise error
        note(f"{path.name}: {array} is left out: {error}")
    sets = []
    for output, (array, spec) in specs.items():
        count, terms = arrays["a"].shape
        operands = [
            f"{spec.input.name}",
            *([] if spec.input_b == spec.input else [f"{spec.input_b.name}"]),
        ]
        sets.append(
            DataSet(
                name=f"{chosen.name} {'×'.join(operands)}→{output} K={terms}",
                spec=spec,
                a=codes(arrays["a"], spec.input, "a"),
                b=codes(arrays["b"], spec.input_b, "b"),
                c=rounded(arrays.get("c", np.zeros(count, np.uint32)), spec.output, "c"),
                d=rounded(arrays[array], spec.output, array),
            )
        )
    return sets


#: Names of the arrays that are read. ``d`` is another name of ``d_fp32``.
_KNOWN = ("a", "b", "c", "d", "d_fp32", "d_fp16")


def _output(output: str, names: Mapping[str, object]) -> str | None:
    """Return the name of the array with the results of an output format, or None."""
    candidates = (f"d_{output}", "d") if output == "fp32" else (f"d_{output}",)
    return next((name for name in candidates if name in names), None)


def _check_shapes(path: Path, headers: Mapping[str, Header]) -> None:
    """Raise Misfit unless the file has operands and results of matching shapes."""
    if not {"a", "b"} <= headers.keys() or not any(_output(o, headers) for o in ("fp32", "fp16")):
        names = ", ".join(headers) or "none of them"
        raise Misfit(f"{path.name} must hold a, b and d_fp32 or d_fp16, not {names}")
    shape = headers["a"].shape
    good = len(shape) == 2 and all(shape) and headers["b"].shape == shape
    if not good or any(headers[n].shape != shape[:1] for n in headers.keys() - {"a", "b"}):
        shapes = ", ".join(f"{name} {header.shape}" for name, header in headers.items())
        raise Misfit(f"{path.name} must hold a, b (N, K) and c, d (N,), not {shapes}")
    for name, header in headers.items():
        # NumPy reads a stored ml_dtypes array as the void dtype V.
        if header.dtype.kind not in "fuiV" or header.dtype.itemsize > 4:
            raise Misfit(
                f"{name} must be codes of its format, float16, float32 or uint32 "
                f"(fp32 bit patterns), not {header.dtype}"
            )


def run_golden(data: DataSet) -> Result:
    """Compare the golden model with the measured results."""
    return _against(data, fused_dot(*_padded(data), data.spec), "golden")


def run_rtl(data: DataSet) -> Result:
    """Compare the compiled RTL with the measured results, K terms of a long sum at a time."""
    model = compile_unit(DotProduct, spec=data.spec, pipeline=depth_for(data.spec))
    a, b, d = _padded(data)
    k = data.spec.k
    for start in range(0, a.shape[1], k):
        d = model.run(a=a[:, start : start + k], b=b[:, start : start + k], c=d)
    return _against(data, d, "RTL")


def run_m3xu(data: DataSet) -> Result:
    """Compare the 16-bit modes of a matrix unit that also has FP32 and FP32C.

    The unit has only one processing element, because all are equal.
    """
    config = _m3xu_config(data)
    assert config is not None
    a, b, c = _padded(data)
    count = len(a)
    # Each block of K terms is a beat that starts from C, the result of the block before it.
    blocks = [
        {
            side: bus_words(np.ascontiguousarray(x[:, None, i : i + data.spec.k]).view(np.uint8))
            for side, x in (("a", a), ("b", b))
        }
        for i in range(0, a.shape[1], data.spec.k)
    ]
    slots = config.slot_count
    d = c
    model = compile_unit(MatrixUnit, config=config)
    for block in blocks:
        beats = block | {
            "precision": np.full(count, config.precisions.index(data.spec.input.name), np.uint8),
            "start": np.full(count, Start.FROM_C.value, np.uint8),
            # Beats in other slots do not wait for each other.
            "slot": (np.arange(count) % slots).astype(np.uint8),
            "emit": np.ones(count, np.uint8),
        }
        inputs = {"i": beats, "c": d.reshape(count, 1, 1)}
        d = model.stream(inputs=inputs, outputs={"o": count}).outputs["o"].reshape(count)
    return _against(data, d, "RTL")


def _m3xu_config(data: DataSet) -> MatrixUnitConfig | None:
    """Return a unit of one element with the machine's 16-bit modes, FP32 and FP32C.

    The result is None if no such unit computes the set's instruction.
    """
    spec = data.spec
    if spec.input != spec.input_b or spec.input.name not in NARROW or spec.output.name != "fp32":
        return None
    machine = PRESETS[data.name.split()[0]]
    narrow = [name for name in NARROW if (name, "fp32") in machine.combinations]
    config = MatrixUnitConfig(
        m=1,
        n=1,
        k=spec.k * spec.input.storage_bits // 16,
        precisions=(*narrow, "fp32", "fp32c"),
        preset=machine.name,
    )
    return config if config.spec(spec.input.name) == spec else None


def runs(data: DataSet) -> list[tuple[str, Callable[[DataSet], Result]]]:
    """Return the names of the units that a data set applies to, each with its function."""
    pairs = [("golden.fused_dot", run_golden), ("fp.DotProduct", run_rtl)]
    return pairs if _m3xu_config(data) is None else [*pairs, ("cube.MatrixUnit m3xu", run_m3xu)]


def checks() -> Iterator[Check]:
    """Yield the rows of every data set in ``FOLDER``."""
    for path in sorted(FOLDER.glob("*.npz")):
        for index, data in enumerate(load(path)):
            for unit, run in runs(data):
                yield Check(
                    unit=unit,
                    configuration=f"{data.name} measured",
                    run=partial(_row, path, index, run),
                    weight=1 if run is run_golden else 8,
                )


def _row(path: Path, index: int, run, vectors: int, seed: int) -> Result:
    return run(load(path)[index])


def _padded(data: DataSet) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return operands whose K is padded to a multiple of the unit's.

    The additional products are −0, which changes no sum.
    """
    extra = -data.a.shape[1] % data.spec.k
    pad = ((0, 0), (0, extra))
    a = np.pad(data.a, pad, constant_values=data.spec.input.negative_zero)
    b = np.pad(data.b, pad, constant_values=data.spec.input_b.zero)
    return a, b, data.c


def _against(data: DataSet, got: np.ndarray, side: str) -> Result:
    """Compare results bit for bit with the measured ones.

    Two fp16 NaNs count as equal even if their payloads differ, because the measurement converted
    fp16 results to a wider format and back.
    """
    got, measured = np.asarray(got), data.d
    if data.spec.output.name == "fp16":
        nan = np.isnan(got.astype(np.uint16).view(np.float16))
        nan &= np.isnan(measured.astype(np.uint16).view(np.float16))
        measured = np.where(nan, got, measured)
    return compare(
        data.name,
        got=got,
        expected=measured.astype(got.dtype),
        operands={"a": data.a, "b": data.b, "c": data.c},
        labels=(side, "measured"),
    )
