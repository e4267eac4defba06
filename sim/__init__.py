"""Does it work, and how fast is a core built from it? Benches, compiled RTL, simulators."""
