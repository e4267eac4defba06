"""Formal proofs about the RTL, and the mutations of the RTL that each proof must catch."""
