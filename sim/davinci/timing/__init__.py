"""When instructions run: the event engine, its reference, and deadlocks."""
