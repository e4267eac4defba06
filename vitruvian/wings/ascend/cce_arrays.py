"""Arrays of the command ``cce``: the values of ``--arg``, and the results of ``--expect``."""

import argparse
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitruvian.common.errors import UserError
from vitruvian.common.files import reason_of
from vitruvian.common.validate import shortened

if TYPE_CHECKING:
    import numpy as np

#: The forms of an array in ``--arg``, for messages.
ARRAYS = (
    "a file .npy, zeros:N, arange:N, normal:N, uniform:N (also KIND:DTYPE:N:SEED), "
    "struct:FORMAT:VALUES or null"
)

_GENERATED = ("zeros", "normal", "uniform", "arange")
_RANDOM = ("normal", "uniform")
_MAX_ELEMENTS = 1 << 28  # of a generated array
_MAX_BYTES = 4 << 30  # of an array that is read from a file


def tolerance(text: str) -> float:
    """Return a tolerance, a number from 0 on; this function is an argument type."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number from 0 on, not {text!r}")
    return value


def array_argument(name: str, text: str, dtype: str, seed: tuple[int, int]) -> "np.ndarray | None":
    """Return the array that a value of ``--arg`` describes; None for null.

    Parameters
    ----------
    name : str
        Name of the parameter.
    text : str
        A file .npy, null, KIND[:DTYPE]:N[:SEED], or struct:FORMAT:VALUES.
    dtype : str
        The dtype of the parameter's elements, which DTYPE replaces.
    seed : (int, int)
        Seed of a random array that has no SEED of its own.

    Raises
    ------
    UserError
        If the text is none of these.
    """
    if text == "null":
        return None
    kind, *words = text.split(":")
    if kind in _GENERATED:
        return _generated(name, kind, words, dtype, seed)
    if text.endswith(".npy"):
        return _loaded(f"--arg {name}", text)
    if kind == "struct":
        import numpy as np

        return np.frombuffer(structure_argument(name, text), np.uint8).copy()
    raise UserError(f"--arg {name} must be {ARRAYS}, not {shortened(text)}")


def structure_argument(name: str, text: str) -> bytes:
    """Return the bytes of a structure that a value of ``--arg`` describes.

    Parameters
    ----------
    name : str
        Name of the parameter.
    text : str
        A file .npy, or struct:FORMAT:VALUES with the letters of Python's module ``struct``, such as
        ``struct:2If:64,8,0.5``, which aligns members as the compiler does.

    Raises
    ------
    UserError
        If the text is neither, or the values do not fit.
    """
    if text.endswith(".npy"):
        return _loaded(f"--arg {name}", text).tobytes()
    word, _, rest = text.partition(":")
    format, _, listed = rest.partition(":")
    if word != "struct" or not re.fullmatch(r"(?:[0-9]{0,4}[bBhHiIlLqQefdx?])+", format):
        raise UserError(
            f"--arg {name} must be a structure: a file .npy, or struct:FORMAT:VALUES as in "
            f"struct:2If:64,8,0.5, not {shortened(text)}"
        )
    letters = "".join(
        letter * int(count or 1) for count, letter in re.findall(r"([0-9]*)(\D)", format)
    ).replace("x", "")
    values = listed.split(",") if listed else []
    if len(values) != len(letters):
        raise UserError(f"--arg {name}={word}:{format} must have {len(letters)} values, "
                        f"not {len(values)}")  # fmt: skip
    numbers: list[Any] = []
    for letter, value in zip(letters, values, strict=True):
        try:
            numbers.append(float(value) if letter in "efd" else int(value, 0))
            struct.pack(letter, numbers[-1])
        except (ValueError, OverflowError, struct.error):
            raise UserError(
                f"--arg {name}={word}:{format} must have numbers that fit {letter!r}, "
                f"not {shortened(value)}"
            ) from None
    return struct.pack(format, *numbers)


def _generated(
    name: str, kind: str, words: list[str], dtype: str, seed: tuple[int, int]
) -> "np.ndarray":
    import numpy as np

    from vitruvian.golden.vector.formats import DTYPES

    where = f"--arg {name}={kind}"
    # The dtype may be left out, so that a number in its place is the count already.
    if len(words) > 1 and not words[0].isdigit():
        dtype = words.pop(0)
        if dtype not in DTYPES:
            names = ", ".join(DTYPES)
            raise UserError(f"{where}:DTYPE:N must have a dtype of {names}, not {shortened(dtype)}")
    count = words.pop(0) if words else ""
    if not re.fullmatch("[0-9]{1,9}", count) or not 0 < int(count) <= _MAX_ELEMENTS:
        shown = shortened(count)
        raise UserError(f"{where}:N must have 1 to {_MAX_ELEMENTS} elements, not {shown}")
    # The seed of the command and the number of the parameter, unless the argument has a seed of its
    # own.
    source: Any = list(seed)
    if words and kind in _RANDOM and re.fullmatch("[0-9]{1,18}", words[0]):
        source = int(words.pop(0))
    if words:
        allowed = "end in a seed, a whole number" if kind in _RANDOM else "end after N"
        raise UserError(f"{where}:{count} must {allowed}, not in {shortened(words[0])}")
    size, number = int(count), DTYPES.get(dtype, np.dtype(np.uint8))
    if kind == "zeros":
        return np.zeros(size, number)
    if kind == "arange":
        return _rounded(np.arange(size), dtype, number)
    rng = np.random.default_rng(source)
    is_float = dtype == "bf16" or number.kind == "f"
    if kind == "uniform" and not is_float:
        limits = np.iinfo(number)
        # All codes of the type.
        return rng.integers(limits.min, limits.max, size, number, endpoint=True)
    if kind == "normal" and number.kind == "u" and not is_float:
        raise UserError(
            f"{where}:N must have a signed dtype, such as {kind}:fp16:{count}, not {dtype}"
        )
    values = rng.normal(size=size) if kind == "normal" else rng.uniform(-1, 1, size)
    return _rounded(values if is_float else np.rint(values), dtype, number)


def _rounded(values: "np.ndarray", dtype: str, number: "np.dtype[Any]") -> "np.ndarray":
    """Return values in a dtype; bf16 as codes."""
    import numpy as np

    if dtype == "bf16":
        from vitruvian.golden import vector

        return vector.convert(values.astype(np.float32), "fp32", "bf16")
    with np.errstate(over="ignore"):
        return values.astype(number)


def _loaded(option: str, text: str) -> "np.ndarray":
    import numpy as np

    path = Path(text)
    try:
        if not path.is_file():
            raise FileNotFoundError(2, "No such file or directory")
        if path.stat().st_size > _MAX_BYTES:
            raise ValueError(f"it has more than {_MAX_BYTES} bytes")
        mapped = np.load(
            path, mmap_mode="r", allow_pickle=False
        )  # compares the file's size with the shape in its header
        return np.array(mapped)
    except (ValueError, OSError, EOFError, MemoryError) as error:
        reason = reason_of(error)[:200]
        raise UserError(f"{option} must be a file .npy, not {text!r}: {reason}") from None


@dataclass(frozen=True)
class ExpectedArray:
    """The result that a user expects in one array of a kernel.

    Attributes
    ----------
    name : str
        The parameter.
    file : str
        The file that the expected elements come from.
    values : ndarray
        The expected elements, in one dimension.
    is_bf16 : bool
        If True, elements of uint16 are codes of bf16.
    rtol, atol : float or None
        Tolerances; if both are None, bits are compared.
    """

    name: str
    file: str
    values: "np.ndarray"
    is_bf16: bool
    rtol: float | None
    atol: float | None

    def compare(self, result: "np.ndarray") -> tuple[int, str]:
        """Return the number of elements that differ, and a line that says so.

        With a tolerance, a result x fits an expected y if |x − y| ≤ atol + rtol·|y|, or if both
        are the same infinity, or if both are NaN.
        """
        import numpy as np

        flat = np.ascontiguousarray(result).ravel()
        exact = self.rtol is None and self.atol is None
        if exact:
            code = f"V{flat.dtype.itemsize}"
            # As bytes, in which a NaN equals itself and −0 differs from +0.
            fits = flat.view(code) == self.values.view(code)
        else:
            with np.errstate(invalid="ignore", over="ignore"):
                x, y = self._numbers(flat), self._numbers(self.values)
                bound = (self.atol or 0.0) + (self.rtol or 0.0) * np.abs(y)
                close = (np.abs(x - y) <= bound) & np.isfinite(x) & np.isfinite(y)
            # x == y is for infinities, whose difference is a NaN.
            fits = close | (x == y) | (np.isnan(x) & np.isnan(y))
        wrong = np.flatnonzero(~fits)
        count = f"{flat.size:,} elements"
        if not len(wrong):
            how = "equal" if exact else "are within the tolerance of"
            return 0, f"{self.name}: all {count} {how} those of {self.file}"
        first = int(wrong[0])
        got, want = self._shown(flat[first]), self._shown(self.values[first])
        return len(wrong), (
            f"{self.name}: {len(wrong):,} of {count} differ from {self.file}; "
            f"the first is element {first}: {got}, expected {want}"
        )

    def _numbers(self, values: "np.ndarray") -> "np.ndarray":
        """Return elements as float64, in which all dtypes but 64-bit integers are exact."""
        import numpy as np

        if self.is_bf16 and values.dtype == np.uint16:
            return (values.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        return values.astype(np.float64)

    def _shown(self, value: Any) -> str:
        number = self._numbers(value.reshape(1))[0] if self.is_bf16 else value
        # Little-endian bytes, printed with the highest first.
        code = value.tobytes()[::-1].hex()
        return f"{number!s} (0x{code})"


def expectations(
    texts: Sequence[str],
    parameters: Sequence[Any],
    arguments: Mapping[str, Any],
    *,
    rtol: float | None,
    atol: float | None,
) -> list[ExpectedArray]:
    """Return the expected results of ``--expect``, whose files are read at once.

    Parameters
    ----------
    texts : sequence of str
        Values of ``--expect``, NAME=FILE.
    parameters : sequence of Parameter
        Parameters of the kernel.
    arguments : mapping of str to value
        The kernel's arguments by name.
    rtol, atol : float, optional
        Tolerances; without them, bits are compared.

    Raises
    ------
    UserError
        If a name is not an array of the kernel or is given twice, a file cannot be read, or its
        elements cannot be compared with those of the array.
    """
    if not texts and not (rtol is None and atol is None):
        raise UserError(f"--{'atol' if rtol is None else 'rtol'} must come with --expect")
    dtypes = {p.name: p.dtype for p in parameters if arguments.get(p.name) is not None}
    arrays = {p.name: arguments[p.name] for p in parameters if p.is_pointer and p.name in dtypes}
    expected: dict[str, ExpectedArray] = {}
    for text in texts:
        name, equals, file = text.partition("=")
        if not equals:
            raise UserError(f"--expect must be NAME=FILE, not {shortened(text)}")
        if name not in arrays:
            allowed = ", ".join(arrays) or "none, as the kernel has no arrays"
            raise UserError(f"--expect must be of one of {allowed}, not {shortened(name)}")
        if name in expected:
            raise UserError(f"--expect {name} must be given once, not as {text!r} again")
        if not file.endswith(".npy"):
            raise UserError(f"--expect {name} must be a file .npy, not {shortened(file)}")
        values, array = _loaded(f"--expect {name}", file).ravel(), arrays[name]
        if values.size != array.size:
            raise UserError(
                f"--expect {name} must have {array.size:,} elements, not {values.size:,}"
            )
        exact = rtol is None and atol is None
        if values.dtype.kind not in "fiub" or (exact and values.dtype != array.dtype):
            allowed = str(array.dtype) if exact else "numbers"
            hint = " (or give --rtol or --atol)" if exact else ""
            raise UserError(f"--expect {name} must have {allowed}, not {values.dtype}{hint}")
        is_bf16 = dtypes[name] == "bf16"
        expected[name] = ExpectedArray(name, file, values, is_bf16, rtol, atol)
    return list(expected.values())
