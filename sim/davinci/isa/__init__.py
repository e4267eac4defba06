"""Instructions of DaVinci cores as data: operands, fields, and the table of operations."""
