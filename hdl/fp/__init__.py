"""Floating-point units: dot products, and single operations."""
