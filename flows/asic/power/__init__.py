"""Gate-level power: an event-driven simulation of mapped netlists, and the energy of its events."""
