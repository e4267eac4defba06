"""Evaluation of functions by their Taylor series, and by CORDIC, on the vector unit.

``functions`` has the coefficients, ``polynomials`` and ``cordic`` the methods with their golden
models, and ``build`` makes programs of them. They are what Cube-fx is compared with.

References
----------
Tang 2024, ch. 4.
"""
