"""Reports of a simulation: figures, timelines and traces."""
