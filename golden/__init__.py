"""NumPy models, exact to the bit, one per unit, and the parameter objects shared with the RTL."""
