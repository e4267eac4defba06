"""Evaluate the integer expressions of #if and #elif (C11, section 6.10.1)."""

import re

from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition, shown
from vitruvian.sim.davinci.cce.language.limits import BRACKETS_DEEP, too_deep
from vitruvian.sim.davinci.cce.language.tokens import Token

#: Binary operators by precedence, the weakest first.
_LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)


def holds(tokens: list[Token], position: SourcePosition) -> bool:
    """Return True if the expression of an #if is nonzero.

    Raises
    ------
    CceError
        As for ``evaluate``.
    """
    return evaluate(tokens, position) != 0


def evaluate(tokens: list[Token], position: SourcePosition) -> int:
    """Return the integer value of the expression of an #if.

    Parameters
    ----------
    tokens : list of Token
        The expression after macro expansion. A remaining name has the value 0, ``true`` 1.
    position : SourcePosition
        The position of the directive, for an expression that ends too early.

    Returns
    -------
    int
        The exact value; intermediate values may have up to 128 bits.

    Raises
    ------
    CceError
        If the expression is malformed, divides by zero, shifts by less than 0 or more than 63, or
        has a value of 2^128 or more.
    """
    reader = _ConditionReader(tokens, position)
    value = reader.choice()
    if reader.index < len(tokens):
        raise CceError(
            reader.next_position(), f"#if does not expect {shown(tokens[reader.index].text)} here"
        )
    return value


class _ConditionReader:
    """A recursive-descent parser that evaluates while it reads."""

    def __init__(self, tokens: list[Token], position: SourcePosition):
        self.tokens, self.position, self.index = tokens, position, 0
        self.deep = 0  # nested conditional expressions

    def next_position(self) -> SourcePosition:
        """Return the position of the next token, or of the directive at the end."""
        return self.tokens[self.index].position if self.index < len(self.tokens) else self.position

    def accept(self, *texts: str) -> str | None:
        """Consume and return the next token if it is one of ``texts``."""
        if self.index < len(self.tokens) and self.tokens[self.index].text in texts:
            self.index += 1
            return self.tokens[self.index - 1].text
        return None

    def choice(self) -> int:
        self.deep += 1
        if self.deep > BRACKETS_DEEP:
            raise too_deep(self.next_position())
        value = self._choice()
        self.deep -= 1
        return value

    def _choice(self) -> int:
        value = self.binary(0)
        if self.accept("?"):
            yes = self.choice()
            if not self.accept(":"):
                raise CceError(self.next_position(), "#if has a ? without its :")
            no = self.choice()
            return yes if value else no
        return value

    def binary(self, level: int) -> int:
        if level == len(_LEVELS):
            return self.unary()
        value = self.binary(level + 1)
        while sign := self.accept(*_LEVELS[level]):
            value = self._apply(sign, value, self.binary(level + 1))
            if abs(value) >> 128:
                raise CceError(self.next_position(), "a value in an #if must be below 2^128")
        return value

    def _apply(self, sign: str, a: int, b: int) -> int:
        if sign in "/%":
            if b == 0:
                raise CceError(self.next_position(), "#if divides by zero")
            # C truncates the quotient towards zero; Python's // rounds down.
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return quotient if sign == "/" else a - quotient * b
        if sign in ("<<", ">>"):
            if not 0 <= b < 64:
                raise CceError(
                    self.next_position(), f"the shift of an #if must be 0 to 63, not {b!r}"
                )
            return a << b if sign == "<<" else a >> b
        return {
            "||": lambda: int(bool(a or b)),
            "&&": lambda: int(bool(a and b)),
            "|": lambda: a | b,
            "^": lambda: a ^ b,
            "&": lambda: a & b,
            "==": lambda: int(a == b),
            "!=": lambda: int(a != b),
            "<": lambda: int(a < b),
            "<=": lambda: int(a <= b),
            ">": lambda: int(a > b),
            ">=": lambda: int(a >= b),
            "+": lambda: a + b,
            "-": lambda: a - b,
            "*": lambda: a * b,
        }[sign]()

    def unary(self) -> int:
        signs = []
        while sign := self.accept("!", "-", "+", "~"):
            signs.append(sign)
        value = self.primary()
        for sign in reversed(signs):
            value = {"!": int(not value), "-": -value, "+": value, "~": ~value}[sign]
        return value

    def primary(self) -> int:
        if self.accept("("):
            value = self.choice()
            if not self.accept(")"):
                raise CceError(self.next_position(), "#if has a ( without its )")
            return value
        if self.index >= len(self.tokens):
            raise CceError(self.position, "#if must be followed by a complete expression")
        token = self.tokens[self.index]
        self.index += 1
        if token.kind == "id":
            if self.accept("("):  # __has_include(x) and similar tests are false
                while self.index < len(self.tokens) and not self.accept(")"):
                    self.index += 1
                return 0
            return int(token.text == "true")
        if token.kind == "char" and len(token.text) == 3:
            return ord(token.text[1])
        digits = re.fullmatch(
            r"(0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)[uUlL]*", token.text.replace("'", "")
        )
        if not digits or len(token.text) > 200:
            raise CceError(
                token.position, f"#if must contain only integers, not {shown(token.text)}"
            )
        word = digits[1]
        octal = len(word) > 1 and word[0] == "0" and word.isdigit()
        return int(word, 8) if octal and set(word) <= set("01234567") else int(word, 0)
