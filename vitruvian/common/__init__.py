"""What lies under every package: errors, validation, files, cache, workers, progress and tables."""
