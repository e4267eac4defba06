"""The simulator of SIDA, which reads a sparse matrix once for two iterations (Zhang 2024 §4.4)."""
