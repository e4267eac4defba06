"""Back ends of the units: ``dotcore`` for dot products, ``finish`` for single operations."""
