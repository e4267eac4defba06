"""Zhang 2024: stand-ins for the matrices of Table 4.1, and schedules of its applications.

References
----------
Zhang 2024, chapter 4.
"""
