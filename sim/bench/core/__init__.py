"""Benches of a core behind its buses."""
