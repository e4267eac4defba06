"""The machine code of a core with the organisation of DaVinci."""

from .encoding import ENCODINGS, VERSION, Encoding, Member, Place

__all__ = ["ENCODINGS", "VERSION", "Encoding", "Member", "Place"]
