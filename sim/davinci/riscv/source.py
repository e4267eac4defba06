"""The text of a kernel for the compiler: what the kernel reaches, behind its header."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vitruvian.golden.core.memory_map import ARGUMENT_BYTES, CODE, HEAD_BYTES
from vitruvian.sim.davinci.cce import SourcePosition
from vitruvian.sim.davinci.cce.language.keywords import PREDEFINED, RESERVED
from vitruvian.sim.davinci.cce.language.limits import deep_stack, too_deep
from vitruvian.sim.davinci.cce.language.preprocess import preprocess
from vitruvian.sim.davinci.cce.language.tokens import Token
from vitruvian.sim.davinci.cce.rewrite.toplevel import (
    TopLevelDecl,
    choose,
    entry_of,
    split_declarations,
)

from .header import header


@dataclass(frozen=True)
class KernelText:
    """A kernel in C++.

    Attributes
    ----------
    text : str
        The header, the declarations that the kernel reaches, and its start.
    entry : str
        The function to run.
    """

    text: str
    entry: str


def kernel_text(
    path: Path,
    *,
    entry: str | None = None,
    defines: Mapping[str, str] | None = None,
    include_path: Sequence[str | Path] = (),
) -> KernelText:
    """Return the text of a kernel for the compiler.

    Host functions, launches and other kernels are left out, as ``cce.read`` leaves them out, and
    macros are expanded by the same preprocessor.

    Raises
    ------
    CceError
        If the text is not in the dialect.
    """
    macros = {**PREDEFINED, **(defines or {})}
    folders = {"directory": path.parent, "include_path": include_path}
    try:
        with deep_stack():
            tokens = preprocess(
                path.read_text(), path.name, macros, reserved=RESERVED, texts={}, **folders
            )
            decls = split_declarations(tokens)
            first = entry_of(decls, entry, path.name)
            chosen = choose(decls, first)
    except RecursionError:
        raise too_deep(SourcePosition(path.name, 1)) from None
    words = {t.text for decl in chosen for t in decl.tokens if t.kind == "id"}
    body = "".join(_lines(decl) for decl in chosen)
    return KernelText(header(words) + body + _start(first), str(first.name))


def _lines(decl: TopLevelDecl) -> str:
    """Return a declaration with the lines of its source."""
    pieces: list[str] = []
    place: tuple[str, int] | None = None
    for token in _widened(decl.tokens):
        at = (token.position.file, token.position.line)
        if at != place:
            pieces.append(f'\n#line {at[1]} "{at[0]}"\n')
            place = at
        pieces.append(f" {token.text}")
    return "".join(pieces) + "\n"


def _widened(tokens: list[Token]) -> list[Token]:
    """Make ``long`` a type of 64 bits, as on the device, and drop ``__global__``."""
    result: list[Token] = []
    for token in tokens:
        if token.text == "__global__":
            continue
        if token.text == "long":
            if result and result[-1].text == "long long":
                continue
            token = token._replace(text="long long")
        result.append(token)
    return result


def _start(entry: TopLevelDecl) -> str:
    """Return the start routine: it calls the kernel with the arguments of the image."""
    return f"""
#line 1 "start"
template <class T> struct argument {{
    INLINE T at(uint32_t number)
    {{
        T value;
        volatile const uint32_t *from =
            (volatile const uint32_t *)({CODE + HEAD_BYTES:#x}u + {ARGUMENT_BYTES} * number);
        uint32_t words[2] = {{from[0], from[1]}};
        __builtin_memcpy(&value, words, sizeof(T));
        return value;
    }}
}};
template <uint32_t... I> struct indices {{}};
template <uint32_t N, uint32_t... I> struct up_to : up_to<N - 1, N - 1, I...> {{}};
template <uint32_t... I> struct up_to<0, I...> {{ typedef indices<I...> type; }};
template <class... A, uint32_t... I> INLINE void call(void (*kernel)(A...), indices<I...>)
{{
    kernel(argument<A>::at(I)...);
}}
template <class... A> INLINE void start(void (*kernel)(A...))
{{
    call(kernel, typename up_to<sizeof...(A)>::type());
}}
extern "C" __attribute__((used)) void start_kernel() {{ start({entry.name}); put(0, 0); }}
asm(".section .head, \\"ax\\"\\n"
    "j boot\\n"
    ".word image_blocks\\n"
    ".zero {HEAD_BYTES - 8}\\n"
    ".zero {ARGUMENT_BYTES} * 32\\n"
    "boot: lui sp, %hi(stack_top)\\n"
    "addi sp, sp, %lo(stack_top)\\n"
    "call start_kernel\\n"
    "stop: j stop\\n");
"""
