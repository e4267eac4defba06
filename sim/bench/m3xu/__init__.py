"""Benches of the lanes' dot product: wide operands in limbs, narrow ones beside them."""
