"""Cell libraries: our own 45 nm cells (default), Nangate45 on request, or any liberty file."""
