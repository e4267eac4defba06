"""Translation of intrinsics into the instructions of a program."""
