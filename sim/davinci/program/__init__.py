"""Programs: what a kernel's author calls to record instructions."""
