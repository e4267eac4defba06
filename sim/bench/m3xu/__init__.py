"""Benches of the dot product on lanes, which take wide operands in limbs, and of matrix units."""
