"""Floating point, exact to the bit: formats, the fused dot product and its presets."""

from golden.fp.formats import FORMATS, INT_FORMATS, FloatFormat, IntFormat
from golden.fp.spec import PRESETS, DotSpec, Preset, ieee_window

__all__ = ["FORMATS", "INT_FORMATS", "PRESETS", "DotSpec", "FloatFormat", "IntFormat", "Preset",
           "ieee_window"]
