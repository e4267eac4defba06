"""Rewrites of CCE's C++ constructs into C that the parser accepts."""
