"""Signatures of intrinsics: parameters, overloads, and checks of arguments."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from vitruvian.sim.davinci.cce.intrinsics.runtime import Address
from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
from vitruvian.sim.davinci.cce.language.keywords import ENUMERATIONS
from vitruvian.sim.davinci.cce.language.types import PRIVATE, Pointer, Scalar, Type

_SPACES = frozenset(("GM", "L1", "L0A", "L0B", "L0C", "UB", "BT", "FB", "OWN"))
_PARAMETER = re.compile(
    r"(?P<name>\w+):(?P<kind>[\w*]+|-?\d+\.\.-?\d+)(?:<(?P<types>[\w,]+)>)?(?:=(?P<default>-?\w+))?"
)


@dataclass(frozen=True)
class SignatureParameter:
    """One parameter of a signature.

    Attributes
    ----------
    name : str
    kind : str
        For a pointer, the name of the buffer that it points to; ``OWN`` stands for an array of the
        kernel's own, and ``ANY`` for any buffer. Otherwise "int", "u64" (which wraps), "bool",
        "number", "address", or the name of an enumeration.
    types : tuple of str
        Dtypes that a pointer may have; () allows any. A single letter stands for one dtype of
        ``Intrinsic.letters``, which is the same for all parameters with this letter.
    low, high : int
        Bounds of an int.
    default : int, optional
        Default of a parameter at the end, which may be omitted.
    """

    name: str
    kind: str
    types: tuple[str, ...] = ()
    low: int = 0
    high: int = 0
    default: int | None = None


@dataclass(frozen=True)
class Intrinsic:
    """A signature of an intrinsic.

    The letter T in its parameters stands for one of the dtypes ``letters``. ``pipe`` is the name of
    the pipe, or of the parameter that selects it.
    """

    name: str
    pipe: str
    parameters: tuple[SignatureParameter, ...]
    letters: tuple[str, ...] = ()

    @property
    def fewest(self) -> int:
        """Smallest number of arguments."""
        return sum(p.default is None for p in self.parameters)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(p.name for p in self.parameters)})"


def intrinsic(name: str, pipe: str, parameters: str, letters: str = "") -> Intrinsic:
    """Return a signature from a line of text.

    ``dst:UB<T> repeat:0..255 transpose:bool mode:addr_cal_mode_t=0`` are a pointer, an integer with
    its bounds, a bool, and an enumeration that may be omitted.

    Parameters
    ----------
    parameters : str
        The line of text.
    letters : str
        Dtypes that T may stand for.

    Raises
    ------
    ValueError
        If a word of the line is not name:kind.
    """
    result = []
    for word in parameters.split():
        match = _PARAMETER.fullmatch(word)
        if match is None:
            raise ValueError(f"a parameter must be name:kind, not {word!r}")
        kind, types, default = match["kind"], match["types"], match["default"]
        low = high = 0
        if ".." in kind:
            low, high = map(int, kind.split(".."))
            kind = "int"
        result.append(
            SignatureParameter(
                match["name"],
                kind,
                tuple(types.split(",")) if types else (),
                low,
                high,
                None if default is None else int(default),
            )
        )
    return Intrinsic(name, pipe, tuple(result), tuple(letters.split()))


def select(
    candidates: Iterable[Intrinsic], types: Sequence[Type], position: SourcePosition
) -> tuple[Intrinsic, dict[str, str]]:
    """Return the signature that fits arguments of these types, and the dtypes of its letters.

    Raises
    ------
    CceError
        If no signature fits; the message is about the one that fits the most arguments.
    """
    candidates = list(candidates)
    # The number of arguments decides first, so that a message about types is about the right
    # signature.
    counted = [c for c in candidates if c.fewest <= len(types) <= len(c.parameters)]
    if not counted:
        raise CceError(position, _count_message(candidates, len(types)))
    problems = []
    for candidate in counted:
        letters: dict[str, str] = {}
        problem = None
        for number, (parameter, type) in enumerate(zip(candidate.parameters, types, strict=False)):
            problem = _mismatch(parameter, type, candidate, letters)
            if problem:
                # The signature whose mistake comes latest is most likely the one that was meant.
                problems.append((number, f"{candidate.name}: {parameter.name} {problem}"))
                break
        if problem is None:
            return candidate, letters
    raise CceError(position, max(problems)[1])


def _count_message(candidates: list[Intrinsic], given: int) -> str:
    counts = sorted({n for c in candidates for n in range(c.fewest, len(c.parameters) + 1)})
    allowed = ", ".join(map(str, counts[:-1]))
    allowed = f"{allowed} or {counts[-1]}" if allowed else str(counts[-1])
    words = candidates[0]
    noun = "argument" if allowed == "1" else "arguments"
    return f"{words.name} must have {allowed} {noun}, not {given}: {words}"


def _mismatch(
    parameter: SignatureParameter, type: Type, candidate: Intrinsic, letters: dict[str, str]
) -> str | None:
    """Return the fault of an argument's type, or None if it fits."""
    kind = parameter.kind
    if kind == "address":
        if isinstance(type, Pointer) and type.space != "BT":
            return f"must be an address in BT, not a {type}"
        return None
    if kind in _SPACES or kind == "ANY":
        if not isinstance(type, Pointer):
            return f"must be a pointer to {kind}, not {type}"
        space = PRIVATE if kind == "OWN" else kind
        if type.space != space and kind != "ANY":
            return f"must be a pointer to {kind}, not a {type}"
        return _wrong_element(parameter, type.target, candidate, letters)
    if not isinstance(type, Scalar):
        return f"must be a number, not a {type}"
    if type.is_float and kind != "number":
        return f"must be an integer, not a {type}"
    if type.name in ENUMERATIONS and kind not in ("number", type.name):
        words = {
            "int": "an integer",
            "u64": "an integer",
            "bool": "0 or 1",
            "address": "an address",
        }
        return f"must be {words.get(kind, f'a {kind}')}, not a {type.name}"
    return None


def _wrong_element(
    parameter: SignatureParameter, target: Type, candidate: Intrinsic, letters: dict[str, str]
) -> str | None:
    dtype = target.dtype if isinstance(target, Scalar) else None
    if not parameter.types:
        return None
    allowed: tuple[str, ...] = parameter.types
    letter = parameter.types[0]
    if len(letter) == 1:
        allowed = (letters[letter],) if letter in letters else candidate.letters
    if dtype not in allowed:
        return f"must point to {' or '.join(allowed)}, not {dtype or target}"
    if len(letter) == 1:
        # The first pointer with a letter decides its dtype for all others.
        letters[letter] = str(dtype)
    return None


def bind(
    signature: Intrinsic, values: list[Any], types: Sequence[Type], position: SourcePosition
) -> dict[str, Any]:
    """Return the arguments by name, checked against their bounds.

    Parameters
    ----------
    values : list
        Values of the arguments.
    types : sequence of Type
        Types of the arguments.

    Raises
    ------
    CceError
        If an argument is outside its bounds.
    """
    bound: dict[str, Any] = {}
    for parameter, value, type in zip(signature.parameters, values, types, strict=False):
        if isinstance(type, Pointer):
            dtype = type.target.dtype if isinstance(type.target, Scalar) else "uint8"
            bound[parameter.name] = Address(type.space, value, dtype)
            continue
        if parameter.kind == "u64":
            # Negative constants are written for large unsigned fields, as −1 for all ones.
            value &= (1 << 64) - 1
        problem = _out_of_range(parameter, value)
        if problem:
            raise CceError(position, f"{signature.name}: {parameter.name} {problem}, not {value!r}")
        bound[parameter.name] = value
    for parameter in signature.parameters[len(values) :]:
        bound[parameter.name] = parameter.default
    return bound


_ENUMERATED_BOUNDS = {name: (min(v), max(v)) for name, v in ENUMERATIONS.items()}


def _out_of_range(parameter: SignatureParameter, value) -> str | None:
    kind = parameter.kind
    if kind == "int" and not parameter.low <= value <= parameter.high:
        return f"must be {parameter.low} to {parameter.high}"
    if kind == "bool" and value not in (0, 1):
        return "must be 0 or 1"
    if kind in _ENUMERATED_BOUNDS:
        low, high = _ENUMERATED_BOUNDS[kind]
        if not low <= value <= high:
            return f"must be {low} to {high}"
    return None
