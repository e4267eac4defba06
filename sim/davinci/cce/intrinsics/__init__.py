"""The intrinsics of CCE C: signatures, packed arguments and their run-time values."""
