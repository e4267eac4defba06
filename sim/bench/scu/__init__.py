"""Benches of the storage conversion unit."""
