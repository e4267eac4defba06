"""Translation of Amaranth's RTLIL into Verilog that keeps the names of the source.

``rtlil`` reads the text, ``simplify`` folds constants and removes what nothing reads, ``names``
chooses names for nets without one, ``codes`` names constants, ``express`` writes expressions and
``write`` writes modules.
"""
