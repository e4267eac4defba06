"""Compile a parsed kernel into Python closures.

``TranslationUnit`` (unit.py) holds a source. For each function it makes a ``FunctionCompiler``
(function.py), which is composed of one object each for expressions, assignments, calls,
declarations and statements. These objects share a ``Context`` and know only the objects below them.
"""

from vitruvian.common.extras import need

need("pycparser")
