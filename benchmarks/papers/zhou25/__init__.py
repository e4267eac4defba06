"""Zhou et al. 2025: operators that the naive roofline misjudges, and the pruning of combinations.

References
----------
Zhou et al. 2025, §2.3, §4.2 and §4.3.
"""
