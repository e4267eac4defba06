"""From calls of intrinsics to instructions of a program."""
