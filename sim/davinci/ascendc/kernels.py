"""What the text of a source says about its kernels: names and parameters."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from vitruvian.common.errors import UserError
from vitruvian.sim.davinci.cce.kernel import KernelParameter
from vitruvian.sim.davinci.cce.language.types import NAMED, Scalar

_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
_KERNEL = re.compile(
    r"\b__global__\b([^;{}()]*?(?:__mix__\([^)]*\)[^;{}()]*?)?)\b([A-Za-z_]\w*)\s*\("
)
_TEMPLATE = re.compile(r"\btemplate\s*<[^;{}]*>\s*(?:extern\s+\"C\"\s*)?$")
_NAMESPACE = re.compile(r"\bnamespace\s+([A-Za-z_][\w:]*)\s*\{|[{}]")

#: Words of the 950's programming models, which the simulator does not have.
_OTHER_CHIP = re.compile(r"\b(__simd_vf__|__simt_vf__|__VEC_SCOPE__|RegTensor|asc_vf_call)\b")

#: What a message says of such a word.
OF_950 = "is of the Ascend 950; the simulator has the 910 and 910B"

_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b.*$", re.M)
_MARKER = re.compile(r'# (\d+) "([^"]*)"')

#: Macros of the library that register products which Cube cores compute for vector cores.
_SERVER = re.compile(r"\bREGIST_(?:MATMUL|CUBE)_OBJ\b")

#: Signs of the kinds of cores, in the order of their weight.
_KINDS = (
    (r"#\s*define\s+ASCENDC_CUBE_ONLY\b(?![\s\S]*(?:__mix__|KERNEL_TYPE_MIX))", "cube"),
    (r"__mix__|KERNEL_TYPE_MIX|\bREGIST_MATMUL_OBJ|\bmatmul::Matmul\b", "all"),
    (r"\b__vector__\b[^;{]*\(", "vector"),
    (r"\b__cube__\b|KERNEL_TYPE_AIC_ONLY", "cube"),
    (r"KERNEL_TYPE_AIV_ONLY", "vector"),
    (r"\b(Mmad|Fixpipe|LoadData)\s*[<(]", "cube"),
)


@dataclass(frozen=True)
class Declared:
    """A kernel as its source declares it.

    Attributes
    ----------
    name : str
        The name without namespace.
    call : str
        The expression that names the function.
    parameters : tuple of KernelParameter
        The parameters; the dtype of a type that the text does not explain is uint8.
    is_template : bool
        If True, the function is a template.
    attributes : str
        The words between ``__global__`` and the name.
    """

    name: str
    call: str
    parameters: tuple[KernelParameter, ...]
    is_template: bool = False
    attributes: str = ""

    def instance(self, name: str) -> "Declared":
        """Return the kernel with the template arguments of a name."""
        return replace(self, name=name, call=self.call + name[len(self.name) :])


def _bare(text: str) -> str:
    """Return a source without comments and strings, with its lines at their places."""
    return _COMMENT.sub(lambda m: "\n" * m[0].count("\n"), text)


def refuse_other_chips(text: str, file: str, chosen: Callable[[str], str]) -> None:
    """Raise UserError if a source is written for the Ascend 950.

    Parameters
    ----------
    text : str
        The source.
    file : str
        Its name in messages.
    chosen : callable
        Returns the lines of a text, read from standard input, that the conditions of the
        preprocessor choose for the chip, with markers of lines.
    """
    if not _OTHER_CHIP.search(_bare(text)):
        return
    for number, line in _chosen_lines(text, chosen):
        if match := _OTHER_CHIP.search(line):
            raise UserError(f"{file}:{number}: {match[1]} {OF_950}")


def chosen_text(text: str, chosen: Callable[[str], str]) -> str:
    """Return the lines of a source that the conditions of the preprocessor choose.

    Conditions that need an included file may be errors; then all lines are returned.

    Parameters
    ----------
    text, chosen
        As for ``refuse_other_chips``.
    """
    try:
        return "\n".join(line for _, line in _chosen_lines(text, chosen))
    except UserError:
        return text


def _chosen_lines(text: str, chosen: Callable[[str], str]) -> Iterator[tuple[int, str]]:
    number, inside = 0, False
    for line in chosen(_INCLUDE.sub("", _bare(text))).split("\n"):
        if marker := _MARKER.match(line):
            number, inside = int(marker[1]), marker[2] == "<stdin>"
            continue
        if inside:
            yield number, line
        number += 1


def kinds_of(text: str) -> str | None:
    """Return the kinds of cores that a source is for: cube, vector, all, or None if it is silent.

    The device's compiler derives them from attributes, from the library's task types, or from the
    functions that a kernel calls.

    Examples
    --------
    >>> [kinds_of(f"__global__ {word} void k() {{}}") for word in ("__mix__(1, 2)", "__cube__")]
    ['all', 'cube']
    >>> kinds_of("#define ASCENDC_CUBE_ONLY")
    'cube'
    """
    bare = _bare(text)
    for pattern, kind in _KINDS:
        if re.search(pattern, bare):
            return kind
    return None


def calls_other_cores(text: str) -> bool:
    """Return True if vector cores of a source ask Cube cores for products by the library."""
    bare = _bare(text)
    return "ASCENDC_CUBE_ONLY" not in bare and bool(_SERVER.search(bare))


def declared_kernels(text: str) -> Mapping[str, Declared]:
    """Return the ``__global__`` functions of a source by name.

    Examples
    --------
    >>> kernels = declared_kernels("__global__ void k(__gm__ half *x, int32_t n) {}")
    >>> [(p.name, p.dtype, p.is_pointer) for p in kernels["k"].parameters]
    [('x', 'fp16', True), ('n', 'int32', False)]
    """
    bare = _bare(text)
    found: dict[str, Declared] = {}
    for match in _KERNEL.finditer(bare):
        start, depth = match.end(), 1
        end = start
        while end < len(bare) and depth:
            depth += {"(": 1, ")": -1}.get(bare[end], 0)
            end += 1
        words = _split(bare[start : end - 1])
        parameters = tuple(_parameter(each, index) for index, each in enumerate(words))
        before = bare[: match.start()].rstrip()
        before = re.sub(r"\bextern\s*$", "", before).rstrip()
        name = match[2]
        scope = _scope(bare[: match.start()])
        is_template = bool(_TEMPLATE.search(before))
        found[name] = Declared(name, f"{scope}{name}", parameters, is_template, match[1])
    return found


def _scope(text: str) -> str:
    """Return the namespaces that are open at the end of a text, as a prefix of a name."""
    stack: list[str] = []
    for match in _NAMESPACE.finditer(text):
        if match[0] == "}":
            if stack:
                stack.pop()
        else:
            stack.append(f"{match[1]}::" if match[1] else "")
    return "".join(stack)


def _split(text: str) -> list[str]:
    """Return the parameters of a list, which commas separate outside of brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += {"<": 1, "(": 1, "[": 1, ">": -1, ")": -1, "]": -1}.get(letter, 0)
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [p.strip() for p in parts if p.strip() and p.strip() != "void"]


def _parameter(text: str, index: int) -> KernelParameter:
    declared = text.partition("=")[0].strip()
    words = re.findall(r"[A-Za-z_]\w*", declared)
    name = words[-1] if len(words) > 1 else f"arg{index}"
    is_pointer = "*" in declared or "GM_ADDR" in words
    dtype = "uint8" if is_pointer else "int64"
    for word in words[:-1]:
        type = NAMED.get(word)
        if isinstance(type, Scalar):
            dtype = type.dtype
    if not is_pointer and {"int", "unsigned"} & set(words[:-1]):
        dtype = "uint32" if "unsigned" in words else "int32"
    return KernelParameter(name, dtype, is_pointer)
