"""The simulated board: the compiled RTL of a serial unit behind a pseudo-terminal."""
