"""k nearest neighbours on DaVinci cores: distances on the Cube, k-selection on the vector unit.

``KnnShape`` describes a search, ``build`` makes the program of a k-selection method.

References
----------
Tang 2024, ch. 3.
"""
