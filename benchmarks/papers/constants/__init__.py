"""Constants of the chips with more than one reading, and the published figures that judge them.

``readings`` changes the files of the chips, ``figures`` computes the published figures on the
result, and ``benchmarks/constants.py`` prints the tables of docs/results/constants.md.
"""
