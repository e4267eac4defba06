"""Products over the semirings of SIMD²: on the Cube of a core, and on its vector unit.

``cube`` has the Cube that computes all nine operations, ``vector`` the kernel of the vector unit,
``convergence`` the check that an iteration changed nothing, and ``norms`` the distances by one
matrix product. All take FP16 operands.

References
----------
Zhang 2024, §3.6.
"""
