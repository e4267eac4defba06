"""NumPy models, exact to the bit, one per unit, and the parameter objects they share with the RTL."""
