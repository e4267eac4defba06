"""Verilog text of a unit and what goes with it: header, package, bench, register files, bundles."""
