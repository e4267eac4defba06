"""The times of instructions: the event engine, its reference model, and deadlocks."""
