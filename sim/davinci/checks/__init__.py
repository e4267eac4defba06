"""Checks of a program: races, memory bounds, flags and undefined data."""
