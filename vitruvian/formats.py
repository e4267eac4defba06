"""Number formats as data: encode, decode, and quantise arrays to blocks that share a scale.

``encode`` and ``decode`` convert between numbers and codes; ``quantise`` and ``dequantise`` do so
for arrays in blocks (MXFP8, MXFP6, MXFP4, MXINT8, NVFP4, HiF4); ``table`` lists the facts of all
formats. Each name is imported at its first use, so that the import of this module is quick.

>>> from vitruvian import formats
>>> formats.encode([0.3, 7.0], "e2m1").tolist()
[1, 7]
>>> formats.decode([1, 7], "e2m1").tolist()
[0.5, 6.0]
>>> formats.quantise([1.0] * 16, "nvfp4").scales.tolist()
[35]
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vitruvian.golden.fp.blocks import BLOCK_FORMATS, BlockFormat, Blocks, dequantise, quantise
    from vitruvian.golden.fp.catalogue import decode, encode, facts, names, table

__all__ = [
    "BLOCK_FORMATS",
    "BlockFormat",
    "Blocks",
    "decode",
    "dequantise",
    "encode",
    "facts",
    "names",
    "quantise",
    "table",
]

_BLOCKS = ("BLOCK_FORMATS", "BlockFormat", "Blocks", "dequantise", "quantise")


def __getattr__(name: str) -> Any:
    if name in __all__:
        module = "blocks" if name in _BLOCKS else "catalogue"
        return getattr(importlib.import_module(f"vitruvian.golden.fp.{module}"), name)
    raise AttributeError(f"module 'vitruvian.formats' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
