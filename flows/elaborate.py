"""Elaboration for the flows: `hdl.elaborate`, which the compiled models use too."""

from hdl.elaborate import snake, to_rtlil

__all__ = ["snake", "to_rtlil"]
