"""Elements of a block one by one: absolute values, and bytes as FP16."""

from amaranth.hdl import Cat, Const, Mux, Value

from vitruvian.golden.fp.formats import FORMATS

_HALF, _WORD = 16, 32
#: Of FP16: the bias, and the bits of the fraction.
_BIAS, _FRACTION = 15, 10


def absolute(block: Value, wide: Value, whole: Value) -> Value:
    """Return the absolute values of a block, as ``golden.vector.absolute``.

    Parameters
    ----------
    block : Value
        Elements of FP16, or of FP32 if ``wide`` is set, or of INT16 if ``whole`` is.
    """
    words = []
    for n in range(len(block) // _WORD):
        word = block[_WORD * n : _WORD * (n + 1)]
        halves = [word[:_HALF], word[_HALF:]]
        short = Cat(*(Mux(whole, _magnitude(x), _positive(x, "fp16")) for x in halves))
        words.append(Mux(wide, _positive(word, "fp32"), short))
    return Cat(*words)


def _magnitude(number: Value) -> Value:
    """Return the size of an integer; the smallest one stays, as -x wraps."""
    negative = number[-1]
    return ((number ^ negative.replicate(len(number))) + negative)[: len(number)]


def _positive(number: Value, name: str) -> Value:
    """Return a number without its sign bit, and one code for all NaNs."""
    return Mux(is_nan(number, name), Const(FORMATS[name].canonical_nan, len(number)), number[:-1])


def is_nan(number: Value, name: str) -> Value:
    """Return 1 if a code of FP16 or FP32 is a NaN."""
    size, fraction = number[:-1], FORMATS[name].fraction_bits
    return size[fraction:].all() & size[:fraction].any()


def from_bytes(block: Value, signed: Value) -> Value:
    """Return the FP16 codes of integers of a byte; all of them are exact."""
    return Cat(*(_from_byte(block[8 * n : 8 * n + 8], signed) for n in range(len(block) // 8)))


def _from_byte(byte: Value, signed: Value) -> Value:
    negative = byte[-1] & signed
    size = ((byte ^ negative.replicate(8)) + negative)[:8]
    # The highest bit that is set gives the exponent, and those behind it the fraction.
    code: Value = Const(0, _HALF - 1)
    for top in range(8):
        fraction = Cat(Const(0, _FRACTION - top), size[:top])
        code = Mux(size[top], Cat(fraction, Const(_BIAS + top, _HALF - 1 - _FRACTION)), code)
    return Cat(code, negative)
