"""Tang 2024: its performance model, tilings of the search for neighbours, and Cube-fx.

References
----------
Tang 2024, chapters 2 (``closed_form``), 3 (``knn_tiling``, ``tile_times``, ``selection_costs``) and
4 (``cubefx_times``, ``series_precision``).
"""
