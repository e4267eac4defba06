"""Batch checks of the small floating-point units: add, multiply, compare, minimum, convert."""
