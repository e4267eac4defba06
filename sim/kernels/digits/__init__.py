"""A network for handwritten digits as one program of a core."""
