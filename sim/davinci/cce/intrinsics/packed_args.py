"""Arguments that a kernel packs into one 64-bit word."""

from vitruvian.sim.davinci.cce.intrinsics.signature import Intrinsic
from vitruvian.sim.davinci.cce.intrinsics.vector import PACKED
from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition

#: Fields of the words: name, first bit, number of bits.
_BURSTS = (
    ("sid", 0, 4),
    ("n_burst", 4, 12),
    ("len_burst", 16, 16),
    ("src_gap", 32, 16),
    ("dst_gap", 48, 16),
)
_LOAD = (("base_idx", 0, 16), ("repeat", 16, 8), ("src_stride", 24, 16), ("sid", 40, 4))
_PLACE = (
    ("channel", 0, 12),
    ("pos_w", 16, 8),
    ("pos_h", 24, 8),
    ("first_w", 32, 16),
    ("first_h", 48, 16),
)
_WINDOW = (
    ("stride_w", 0, 6),
    ("stride_h", 6, 6),
    ("kernel_w", 12, 8),
    ("kernel_h", 20, 8),
    ("dilation_w", 28, 8),
    ("dilation_h", 36, 8),
    ("jump", 44, 8),
    ("mode", 52, 1),
    ("repeat", 56, 8),
)
_MATRICES = (
    ("sid", 0, 4),
    ("nd_num", 4, 12),
    ("rows", 16, 16),
    ("columns", 32, 16),
    ("src_matrix_stride", 48, 16),
)
_NZ = (
    ("src_row_stride", 0, 16),
    ("dst_c0_stride", 16, 16),
    ("dst_row_stride", 32, 16),
    ("dst_matrix_stride", 48, 16),
)
_OUT = (("sid", 0, 4), ("n_size", 4, 12), ("m_size", 16, 16), ("dst_stride", 32, 32))
_FIXPIPE = (
    ("src_stride", 0, 16),
    ("unit_flag", 32, 2),
    ("quant_pre", 34, 5),
    ("relu_pre", 39, 3),
    ("channel_split", 42, 1),
    ("nz2nd", 43, 1),
)
_PRODUCT = (
    ("m", 0, 12),
    ("k", 12, 12),
    ("n", 24, 12),
    ("c_matrix_source", 62, 1),
    ("init", 63, 1),
)
_FILL = (("repeat", 0, 16), ("blocks", 16, 16), ("dst_gap", 32, 16))


def layouts(signature: Intrinsic) -> dict[str, tuple[tuple[str, int, int], ...]]:
    """Return the fields (name, first bit, number of bits) of each packed word of a signature.

    The words of control registers have none.
    """
    name = signature.name
    words = {parameter.name for parameter in signature.parameters}
    if "xm" in words and name.startswith("copy_"):
        first, second = (_OUT, _FIXPIPE) if "_cc_to_" in name else (_MATRICES, _NZ)
        return {"xm": first, "xt": second}
    if "xm" in words:
        return {"xm": _PLACE, "xt": _WINDOW}
    if "config" not in words or signature.pipe in ("S", "unit"):
        return {}
    if name in PACKED:
        return {"config": PACKED[name]}
    if name.startswith("copy_"):
        return {"config": _BURSTS}
    if name == "mad":
        return {"config": _PRODUCT}
    # The others are set_l0a_2d and set_l0b_2d.
    return {"config": _LOAD if name.startswith("load_") else _FILL}


def unpack(signature: Intrinsic, arguments: dict, position: SourcePosition) -> dict:
    """Replace the words ``config``, or ``xm`` and ``xt``, by their fields.

    The words of control registers stay as they are.

    Parameters
    ----------
    arguments : dict
        Arguments by name, which are changed in place.

    Raises
    ------
    CceError
        If a load of fractals has a repeat of 0.
    """
    name = signature.name
    for word, fields in layouts(signature).items():
        _take_apart(arguments, word, fields)
        if word == "xt" and fields is _WINDOW:
            for side in ("first_w", "first_h"):  # signed
                arguments[side] -= (arguments[side] >> 15) << 16
        if name.startswith("load_") and not arguments["repeat"]:
            raise CceError(position, f"{name}: repeat must be 1 to 255, not 0")
    return arguments


def _take_apart(arguments: dict, name: str, fields: tuple[tuple[str, int, int], ...]) -> None:
    word = arguments.pop(name)
    for field, first, bits in fields:
        arguments[field] = word >> first & ((1 << bits) - 1)
