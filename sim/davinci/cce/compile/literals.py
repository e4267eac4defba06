"""The types and values of literals."""

import math
import re

from pycparser import c_ast

from vitruvian.sim.davinci.cce.compile.parse import position_of
from vitruvian.sim.davinci.cce.compile.printing import unescaped
from vitruvian.sim.davinci.cce.language.errors import CceError
from vitruvian.sim.davinci.cce.language.types import (
    BOOL,
    DOUBLE,
    FLOAT,
    INT,
    Scalar,
    Type,
    converter,
)

#: The candidate types of an integer literal in order of size: kind, bytes, and exclusive bound.
_INTEGERS = (("i", 4, 1 << 31), ("u", 4, 1 << 32), ("i", 8, 1 << 63), ("u", 8, 1 << 64))


def literal(node: c_ast.Constant) -> tuple[Type, int | float]:
    """Return the type and the value of a literal.

    Raises
    ------
    CceError
        If an integer has more than 64 bits, or the literal more than 1000 characters.
    """
    text = node.value
    if node.type in ("bool", "nullptr"):
        return BOOL, int(text == "true")
    if "char" in node.type:
        return INT, ord(unescaped(text)[:1] or "\0")
    if len(text) > 1000:
        message = "a number must have at most 1000 characters"
        raise CceError(position_of(node), f"{message}, not {len(text)}")
    text = text.replace("'", "")
    is_hex = text[:2].lower() == "0x"
    if re.search(r"[pP]" if is_hex else r"[.eEfF]", text):
        kind = FLOAT if text[-1] in "fF" else DOUBLE
        convert = converter(DOUBLE, kind)
        digits = text.rstrip("fFlL")
        try:
            value = float.fromhex(digits) if is_hex else float(digits)
        except OverflowError:
            value = math.inf
        return kind, convert(value) if convert else value
    body = text.rstrip("uUlL")
    suffix = text[len(body) :].lower()
    octal = len(body) > 1 and body[0] == "0" and body.isdigit()
    value = int(body, 8) if octal else int(body, 0)
    # The first type that holds the value; a decimal literal without u is unsigned only if no signed
    # type holds it (C11, section 6.4.4.1).
    decimal = body.isdigit() and not octal
    for kind, size, limit in _INTEGERS:
        allowed = (kind == "u") if "u" in suffix else (kind == "i" or not decimal or size == 8)
        if value < limit and allowed and (size == 8 or "l" not in suffix):
            return Scalar(kind, size, f"{'u' if kind == 'u' else ''}int{8 * size}_t"), value
    raise CceError(position_of(node), f"an integer must be below 2^64, not {text}")
