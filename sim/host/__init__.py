"""The host of a serial unit: the protocol of the line, and products of whole matrices over it."""
