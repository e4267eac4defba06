"""The header that makes CCE C a program of a RISC-V: intrinsics are stores to the queue register.

The functions are generated from the table of intrinsics (``cce.intrinsics.table``), the rules of
``riscv.rules``, and the encoding (``golden.core.ENCODINGS``), so that no bit has a second source.
"""

from collections.abc import Iterable

from vitruvian.golden.core.encoding import (
    BUFFERS,
    ENCODINGS,
    UNITS,
    WORD_BITS,
    Encoding,
)
from vitruvian.sim.davinci.cce.intrinsics.packed_args import layouts
from vitruvian.sim.davinci.cce.intrinsics.signature import Intrinsic, SignatureParameter
from vitruvian.sim.davinci.cce.intrinsics.table import PIPES, intrinsic_table
from vitruvian.sim.davinci.cce.language.keywords import SPACES
from vitruvian.sim.davinci.cce.sink.program import status

from .prelude import C_TYPES, prelude
from .rules import Rule, rule_of

_HALF = WORD_BITS // 2
_WORDS_OF_SPACES = {space: word for word, space in SPACES.items()}
#: Functions that the prelude defines by hand.
_BY_HAND = frozenset(
    "set_vector_mask set_vector_mask_dup set_fmatrix set_fcol2img set_padding set_mask_norm "
    "set_mask_count set_flag wait_flag pipe_barrier".split()
)


def header(words: Iterable[str]) -> str:
    """Return the header for a kernel.

    Parameters
    ----------
    words : iterable of str
        The identifiers of the kernel. Only intrinsics among them are defined.
    """
    used = set(words)
    parts = [prelude(counting="set_mask_count" in used), _synchronisation()]
    for name, signatures in intrinsic_table().items():
        if name not in used or name in _BY_HAND:
            continue
        if status(name) == "no effect" or name.startswith("set_atomic_"):
            parts.append(f"template <class... A> INLINE void {name}(A...) {{}}")
            continue
        written = [function_of(signature) for signature in signatures]
        parts += dict.fromkeys(text for text in written if text)
    return "\n".join(parts) + "\n"


def function_of(signature: Intrinsic) -> str | None:
    """Return the function of a signature in C++, or None if no core has such an instruction."""
    rule = rule_of(signature)
    if rule is None or signature.pipe not in UNITS:
        return None
    types: dict[str, str] = {p.name: _element(p) for p in signature.parameters}
    templates = dict.fromkeys(t for t in types.values() if t.startswith("T"))
    lead = f"template <{', '.join(f'class {t}' for t in templates)}> " if templates else ""
    parameters = ", ".join(_parameter(p, types) for p in signature.parameters)
    lines = [f"{lead}INLINE void {signature.name}({parameters})", "{"]
    lines += _unpacked(signature)
    if rule.guard:
        lines.append(f"    if ({rule.guard}) return;")
    lines += _instruction(signature, rule, types)
    return "\n".join([*lines, "}"])


def _element(parameter: SignatureParameter) -> str:
    """Return the type that a pointer points to, in C++; "" for a number."""
    if parameter.kind not in _WORDS_OF_SPACES:
        return ""
    match parameter.types:
        case (one,):
            return C_TYPES.get(one, "T")
        case _:
            return f"T_{parameter.name}"


def _parameter(parameter: SignatureParameter, types: dict[str, str]) -> str:
    name, kind = parameter.name, parameter.kind
    if kind in _WORDS_OF_SPACES:
        return f"{_WORDS_OF_SPACES[kind]} {types[name]} *{name}"
    if kind == "int":
        wide = "uint64_t" if parameter.high > 0xFFFFFFFF else "uint32_t"
        text = "int32_t" if parameter.low < 0 else wide
    elif kind == "number":
        element = next(t for t in reversed(types.values()) if t)
        text = f"typename same<{element}>::type" if element[0] == "T" else element
    else:
        # Overloads differ by the type of the address mode; other enumerations may be numbers.
        text = {"u64": "uint64_t", "bool": "bool", "addr_cal_mode_t": kind}.get(kind, "int32_t")
    default = parameter.default
    if default is None:
        return f"{text} {name}"
    return f"{text} {name} = ({text}){default}"


def _unpacked(signature: Intrinsic) -> list[str]:
    """Return the fields of packed words as variables."""
    lines = []
    for word, fields in layouts(signature).items():
        for name, first, bits in fields:
            value = f"({word} >> {first} & {(1 << bits) - 1:#x}u)"
            if name in ("first_w", "first_h"):
                value = f"(int16_t){value}"
            kind = "int32_t" if name in ("first_w", "first_h") else "uint32_t"
            lines.append(f"    {kind} {name} = {value};")
    return lines


def _instruction(signature: Intrinsic, rule: Rule, types: dict[str, str]) -> list[str]:
    encoding = ENCODINGS[rule.op]
    if not rule.lanes:
        return ["    BEGIN;", *_puts(signature, rule, types, encoding, ""), "    BEGIN;"]
    kinds = [_dtype(rule, operand, types) for operand in rule.lanes]
    widest = _widest(kinds)
    puts = _puts(signature, rule, types, encoding, " + p.words")
    if "count" not in rule.values.values():  # the counting mode does not matter
        return [
            f"    piece p = masked(256 / {widest}, repeat);",
            "    BEGIN;",
            *puts,
            "    put_mask(p);",
            "    BEGIN;",
        ]
    return [
        f"    pieces(256 / {widest}, repeat, [=](piece p) __attribute__((always_inline)) {{",
        "        uint32_t first = p.first, count = p.count;",
        "        BEGIN;",
        *(f"    {line}" for line in puts),
        "        put_mask(p);",
        "        BEGIN;",
        "    });",
    ]


def _widest(kinds: list[str]) -> str:
    """Return the bytes of the widest of some types, which decide how many lanes there are."""
    text = f"(uint32_t)dtype_of<{kinds[0]}>::size"
    for kind in kinds[1:]:
        text = f"max({text}, (uint32_t)dtype_of<{kind}>::size)"
    return text


def _dtype(rule: Rule, operand: str, types: dict[str, str]) -> str:
    return rule.dtypes.get(operand) or types[rule.operands[operand][0]]


def _puts(
    signature: Intrinsic, rule: Rule, types: dict[str, str], encoding: Encoding, more: str
) -> list[str]:
    """Return the stores of the words without a mask."""
    pointers = {p.name: p.kind for p in signature.parameters}
    values = dict(rule.values)
    values |= {
        "opcode": str(encoding.code),
        "unit": str(UNITS.index(signature.pipe)),
        "length": f"{encoding.words}{more}",
    }
    for operand, (pointer, offset) in rule.operands.items():
        values[operand] = f"place({pointer}){f' + {offset}' if offset else ''}"
        values[f"{operand}.buffer"] = str(BUFFERS.index(pointers[pointer]))
        values[f"{operand}.dtype"] = f"dtype_of<{_dtype(rule, operand, types)}>::code"
    for member in encoding.members:
        if member.element and member.name in values:
            operand = "dst" if encoding.op == "vdup" else member.element
            kind = _dtype(rule, operand, types)
            if values[member.name] == "scalar":
                values[member.name] = f"code_of<{kind}>(scalar)"
            else:  # the register of padding, of which an element takes its bits
                values[member.name] = (
                    f"({values[member.name]} & ((1ull << 8 * sizeof({kind})) - 1))"
                )
        if member.optional and member.name in values:
            values[f"{member.name}?"] = "1"
    return stores(encoding, values)


def stores(encoding: Encoding, values: dict[str, str]) -> list[str]:
    """Return the stores of an instruction whose parts are expressions of C++."""
    halves: list[tuple[list[str], list[str]]] = [([], []) for _ in range(encoding.words)]
    for name, value in values.items():
        place = encoding.places[name]
        mask = "" if place.bits >= _HALF else f" & {(1 << place.bits) - 1:#x}u"
        whole = f"((uint32_t)({value}){mask})"
        low, high = halves[place.word]
        if place.low >= _HALF:
            high.append(f"{whole} << {place.low - _HALF}")
            continue
        low.append(f"{whole} << {place.low}")
        if place.bits > _HALF:
            high.append(f"(uint32_t)((uint64_t)({value}) >> {_HALF})")
        elif place.low + place.bits > _HALF:
            high.append(f"{whole} >> {_HALF - place.low}")
    return [
        f"    put({' | '.join(low) or '0'}, {' | '.join(high) or '0'});" for low, high in halves
    ]


def _synchronisation() -> str:
    """Return the functions for flags and barriers, and that of the end."""
    # The numbers of the pipes, and those of the units in the encoding.
    lines = ["INLINE uint32_t unit_of(int32_t pipe)", "{"]
    for number, name in PIPES.items():
        if name in UNITS and UNITS.index(name) != number:
            lines.append(f"    if (pipe == {number}) return {UNITS.index(name)};")
    lines += ["    return (uint32_t)pipe;", "}"]
    for op, unit in (("set_flag", "source"), ("wait_flag", "target")):
        encoding = ENCODINGS[op]
        values = {
            "opcode": str(encoding.code),
            "length": str(encoding.words),
            "unit": f"unit_of({unit})",
            "source": "unit_of(source)",
            "target": "unit_of(target)",
            "register": "number",
        }
        lines.append(f"INLINE void {op}(int32_t source, int32_t target, int32_t number)")
        lines += ["{", "    BEGIN;", *stores(encoding, values), "    BEGIN;", "}"]
    encoding = ENCODINGS["pipe_barrier"]
    everything = next(number for number, name in PIPES.items() if name == "ALL")
    values = {
        "opcode": str(encoding.code),
        "length": str(encoding.words),
        "unit": f"(pipe == {everything} ? {UNITS.index('S')} : unit_of(pipe))",
        "unit?": f"(pipe == {everything} ? 0 : 1)",
    }
    lines.append("INLINE void pipe_barrier(int32_t pipe)")
    lines += ["{", "    BEGIN;", *stores(encoding, values), "    BEGIN;", "}"]
    return "\n".join(lines)
