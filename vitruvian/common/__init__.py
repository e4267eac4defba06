"""The ground floor of every package: errors, validation, files, cache, workers and tables."""
