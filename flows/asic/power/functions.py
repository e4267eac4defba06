"""Boolean functions of library cells, as truth tables."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from vitruvian.flows.asic.liberty_text import LibertyError

#: The largest number of inputs: a truth table is a word of 64 bits.
MOST_INPUTS = 6
_TOKEN = re.compile(r"\s*(\w+|[!'&*|+^()])")


@dataclass(frozen=True)
class TruthTable:
    """A function of some pins: bit i of ``word`` is its value at input pattern i.

    Bit k of a pattern is the value of ``inputs[k]``.
    """

    inputs: tuple[str, ...]
    word: int


def truth_table(function: str, inputs: Sequence[str]) -> TruthTable:
    """Return the truth table of a liberty ``function`` over ``inputs``.

    The operators in the order of their precedence are ``!`` and ``'``, ``^``, ``&`` (also ``*`` or
    nothing between two operands) and ``|`` (also ``+``).

    Raises
    ------
    LibertyError
        If the text is no function of these inputs, or if there are more than ``MOST_INPUTS``.
    """
    if len(inputs) > MOST_INPUTS:
        raise LibertyError(f"a cell must have at most {MOST_INPUTS} inputs, not {len(inputs)}")
    return TruthTable(tuple(inputs), _FunctionParser(function, inputs).parse())


class _FunctionParser:
    """A recursive-descent parser whose values are truth tables."""

    def __init__(self, function: str, inputs: Sequence[str]) -> None:
        self.text = function
        self.tokens = _TOKEN.findall(function)
        if "".join(self.tokens) != re.sub(r"\s", "", function):
            raise self.error()
        rows = range(1 << len(inputs))
        self.all = (1 << len(rows)) - 1
        self.values = {"0": 0, "1": self.all}
        for k, pin in enumerate(inputs):
            self.values[pin] = sum(1 << row for row in rows if row >> k & 1)

    def error(self) -> LibertyError:
        return LibertyError(f"function must be a Boolean expression of inputs, not {self.text!r}")

    def parse(self) -> int:
        word = self.either()
        if self.tokens:
            raise self.error()
        return word

    def next_is(self, *tokens: str) -> bool:
        return bool(self.tokens) and self.tokens[0] in tokens

    def either(self) -> int:
        word = self.both()
        while self.next_is("|", "+"):
            self.tokens.pop(0)
            word |= self.both()
        return word

    def both(self) -> int:
        word = self.different()
        while self.tokens and not self.next_is("|", "+", ")", "^"):
            if self.next_is("&", "*"):
                self.tokens.pop(0)
            word &= self.different()
        return word

    def different(self) -> int:
        word = self.single()
        while self.next_is("^"):
            self.tokens.pop(0)
            word ^= self.single()
        return word

    def single(self) -> int:
        if not self.tokens:
            raise self.error()
        token = self.tokens.pop(0)
        if token == "!":
            word = self.all ^ self.single()
        elif token == "(":
            word = self.either()
            if not self.next_is(")"):
                raise self.error()
            self.tokens.pop(0)
        elif token in self.values:
            word = self.values[token]
        else:
            raise self.error()
        while self.next_is("'"):
            self.tokens.pop(0)
            word ^= self.all
        return word
