"""The Cube's matrix multiply-accumulate."""

from .mmad import mmad

__all__ = ["mmad"]
